//! Coordinates of an experiment's cells: device, variant, and the axes of its grid.
//!
//! Claims and published numbers name cells by coordinates. This module runs and reads nothing.

use std::collections::BTreeMap;

use crate::cell::CellKey;
use crate::find;

/// Cells by coordinates. Maps `device`, `variant` or the name of a grid axis to a value. Missing
/// coordinates are open.
pub type CellSelector = BTreeMap<String, String>;

/// Axes of an experiment with their values: `device`, `variant`, then the grid axes.
#[derive(Clone, Debug)]
pub struct ExperimentAxes {
    axes: Vec<(String, Vec<String>)>,
}

impl ExperimentAxes {
    pub fn new(devices: Vec<String>, variants: Vec<String>, grid: Vec<(String, Vec<String>)>) -> ExperimentAxes {
        let own = [("device".to_string(), devices), ("variant".to_string(), variants)];
        ExperimentAxes { axes: own.into_iter().chain(grid).collect() }
    }

    /// Values on an axis. Empty without such an axis.
    pub fn values(&self, axis: &str) -> &[String] {
        let axis = self.axes.iter().find(|(name, _)| name == axis);
        axis.map_or(&[], |(_, values)| values)
    }

    /// All cells, in the order devices, grid, variants.
    pub fn keys(&self) -> Vec<CellKey> {
        let no_variant = [String::new()];
        let variants = match self.values("variant") {
            [] => &no_variant,
            variants => variants,
        };
        let mut points: Vec<Vec<String>> = vec![Vec::new()];
        for (_, values) in &self.axes[2..] {
            let extend = |point: &Vec<String>| {
                let values = values.iter();
                values.map(|value| [point.as_slice(), std::slice::from_ref(value)].concat()).collect::<Vec<_>>()
            };
            points = points.iter().flat_map(extend).collect();
        }
        let mut keys = Vec::new();
        for device in self.values("device") {
            for point in &points {
                for variant in variants {
                    keys.push(CellKey { device: device.clone(), variant: variant.clone(), grid: point.clone() });
                }
            }
        }
        keys
    }

    pub fn selects(&self, selector: &CellSelector, key: &CellKey) -> bool {
        selector.iter().all(|(name, value)| self.value(key, name) == Some(value))
    }

    fn value<'a>(&self, key: &'a CellKey, name: &str) -> Option<&'a String> {
        match self.axes.iter().position(|(axis, _)| axis == name)? {
            0 => Some(&key.device),
            1 => Some(&key.variant),
            axis => key.grid.get(axis - 2),
        }
    }

    /// Returns the cell with some coordinates changed.
    ///
    /// # Panics
    /// A coordinate is no axis, which [`ExperimentAxes::check`] rejects.
    pub fn moved(&self, key: &CellKey, to: &CellSelector) -> CellKey {
        let mut key = key.clone();
        for (name, value) in to {
            let axis = self.axes.iter().position(|(axis, _)| axis == name);
            let coordinate = match axis.expect("selectors are checked") {
                0 => &mut key.device,
                1 => &mut key.variant,
                axis => &mut key.grid[axis - 2],
            };
            coordinate.clone_from(value);
        }
        key
    }

    /// # Errors
    /// A coordinate or value does not exist. The message is a sentence.
    pub fn check(&self, selector: &CellSelector) -> Result<(), String> {
        for (name, value) in selector {
            if !self.axes.iter().any(|(axis, _)| axis == name) {
                let known = self.axes.iter().map(|(axis, _)| axis.as_str());
                return Err(find::unknown_key(name, known));
            }
            let values = self.values(name);
            if !values.contains(value) {
                let hint = base::hint(value, values.iter().map(String::as_str));
                return Err(format!("{name} has no value {value:?}{hint}. Its values are {}", values.join(", ")));
            }
        }
        Ok(())
    }
}

/// Name of a grid axis. Experiments know it, results hold only values.
pub fn axis_name(axes: &[String], index: usize) -> String {
    axes.get(index).cloned().unwrap_or_else(|| format!("axis {}", index + 1))
}
