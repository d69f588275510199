//! The namespaces of a drive, at most one for each namespace identifier. No two share a page of the
//! drive.
//!
//! The namespaces are non-volatile state. This file finds, adds and removes namespaces and checks
//! the invariants between them. It moves no data and reports no changes to hosts.

use nvme_spec::Status;
use serde::{Deserialize, Serialize};
use ssd::{DeviceLayout, RuhId};

use crate::error::{Failure, Parameter};
use crate::fdp::ReportedNamespace;
use crate::namespace::{Namespace, PageExtent};
use crate::setup::NAMESPACES_MAX;

/// The namespaces of a drive. See the module documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Namespaces {
    /// Slots by NSID - 1. A namespace in a slot may be unattached.
    slots: Vec<Option<Namespace>>,
    /// Number of namespaces ever created, from which the globally unique identifiers follow.
    pub(crate) created: u64,
}

fn slot(nsid: u32) -> usize {
    (nsid as usize).wrapping_sub(1)
}

impl Namespaces {
    /// All namespaces with their identifiers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Namespace)> + Clone {
        (1..).zip(&self.slots).filter_map(|(nsid, namespace)| Some((nsid, namespace.as_ref()?)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Namespace)> {
        (1..).zip(&mut self.slots).filter_map(|(nsid, namespace)| Some((nsid, namespace.as_mut()?)))
    }

    pub(crate) fn allocate_slots(&mut self) {
        assert!(self.slots.len() <= NAMESPACES_MAX as usize, "a stored state was checked");
        self.slots.resize(NAMESPACES_MAX as usize, None);
    }

    /// Returns a namespace, if it exists.
    #[inline]
    pub fn find(&self, nsid: u32) -> Option<&Namespace> {
        self.slots.get(slot(nsid))?.as_ref()
    }

    pub(crate) fn find_mut(&mut self, nsid: u32) -> Option<&mut Namespace> {
        self.slots.get_mut(slot(nsid))?.as_mut()
    }

    #[inline]
    pub(crate) fn get(&self, nsid: u32) -> &Namespace {
        self.find(nsid).expect("a namespace that exists")
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, nsid: u32) -> &mut Namespace {
        self.find_mut(nsid).expect("a namespace that exists")
    }

    pub(crate) fn allocated(&self, nsid: u32) -> Result<&Namespace, Failure> {
        match self.slots.get(slot(nsid)) {
            Some(Some(namespace)) => Ok(namespace),
            Some(None) => Err(Failure::invalid_field(Parameter::NSID, format!("namespace {nsid} does not exist"))),
            None => {
                let cause =
                    format!("{nsid:#x} is not a namespace identifier. Valid identifiers are 1 to {NAMESPACES_MAX}");
                Err(Failure::new(Status::INVALID_NAMESPACE_OR_FORMAT, cause).at(Parameter::NSID))
            }
        }
    }

    /// Refuses a namespace that is not active for a controller. The status is Invalid Field even if
    /// the namespace exists.
    #[inline]
    pub(crate) fn active(&self, controller: u16, nsid: u32) -> Result<&Namespace, Failure> {
        let namespace = self.allocated(nsid)?;
        if !namespace.is_attached(controller) {
            let cause = format!("namespace {nsid} is not attached to controller {controller}");
            return Err(Failure::invalid_field(Parameter::NSID, cause));
        }
        Ok(namespace)
    }

    pub(crate) fn check_unprotected(&self, nsids: impl IntoIterator<Item = u32>) -> Result<(), Failure> {
        match nsids.into_iter().find(|&nsid| self.get(nsid).write_protected) {
            None => Ok(()),
            Some(nsid) => {
                Err(Failure::new(Status::NAMESPACE_IS_WRITE_PROTECTED, format!("namespace {nsid} is write protected")))
            }
        }
    }

    pub(crate) fn free_identifier(&self) -> Option<u32> {
        (1..).zip(&self.slots).find(|(_, slot)| slot.is_none()).map(|(nsid, _)| nsid)
    }

    pub(crate) fn add(&mut self, nsid: u32, namespace: Namespace) {
        assert_eq!(
            namespace.events_enabled.len(),
            namespace.placement_handles.len(),
            "each placement handle enables its own events"
        );
        let before = self.slots[slot(nsid)].replace(namespace);
        assert!(before.is_none(), "namespace identifier {nsid} was free");
    }

    pub(crate) fn remove(&mut self, nsid: u32) -> Namespace {
        self.slots[slot(nsid)].take().expect("a namespace that exists")
    }

    pub(crate) fn pages(&self) -> u64 {
        self.iter().map(|(_, namespace)| namespace.pages()).sum()
    }

    /// The first namespace that writes through a reclaim unit handle.
    pub(crate) fn of_handle(&self, handle: RuhId) -> Option<u32> {
        let mut all = self.iter();
        all.find(|(_, namespace)| namespace.placement_handles.contains(&handle)).map(|(nsid, _)| nsid)
    }

    /// All namespaces in the form that the reporting rules of FDP events need.
    pub(crate) fn reported(&self) -> impl Iterator<Item = ReportedNamespace<'_>> + Clone {
        self.iter().map(|(nsid, namespace)| ReportedNamespace::new(nsid, namespace))
    }

    /// Refuses an LBA format for `handles` if another namespace with one of them has a different
    /// format. Namespaces in `except` do not count. All namespaces of a reclaim unit handle must
    /// share one format (NVM Command Set, "Namespace Management command").
    pub(crate) fn check_shared_format(
        &self,
        handles: &[RuhId],
        format: u8,
        except: &[u32],
        parameter: Parameter,
    ) -> Result<(), Failure> {
        let shares = |namespace: &Namespace| namespace.placement_handles.iter().any(|its| handles.contains(its));
        let differs = |nsid: &u32, its: &Namespace| !except.contains(nsid) && its.format != format && shares(its);
        match self.iter().find(|(nsid, namespace)| differs(nsid, namespace)) {
            None => Ok(()),
            Some((nsid, other)) => {
                let cause = format!(
                    "namespace {nsid} shares a reclaim unit handle but has LBA format {} instead of {format}",
                    other.format
                );
                Err(Failure::new(Status::INVALID_FORMAT, cause).at(parameter))
            }
        }
    }

    /// Checks the values of stored namespaces, independently of the drive. The error is a sentence
    /// without its end.
    pub(crate) fn check_numbers(&self) -> Result<(), String> {
        if self.slots.len() > NAMESPACES_MAX as usize {
            return Err(format!("the state has {} namespaces, but the maximum is {NAMESPACES_MAX}", self.slots.len()));
        }
        self.iter().try_for_each(|(nsid, namespace)| {
            namespace.check().map_err(|problem| format!("namespace {nsid} {problem}"))
        })
    }

    /// Checks that the namespaces fit this device. Each must lie inside the drive, share no page,
    /// have enough pages for its blocks and use existing handles. A private namespace must have at
    /// most one controller.
    ///
    /// # Errors
    /// The problem, a sentence without its end.
    pub fn check(&self, layout: &DeviceLayout) -> Result<(), String> {
        let mut extents: Vec<PageExtent> = Vec::new();
        for (nsid, namespace) in self.iter() {
            let bytes = u128::from(namespace.blocks) << namespace.block_bytes_log2();
            let page_bytes = u128::from(namespace.pages()) * u128::from(layout.page_bytes);
            if namespace.blocks == 0 || bytes > page_bytes {
                return Err(format!("namespace {nsid} has {bytes} bytes, but its pages have {page_bytes}"));
            }
            let is_known = |handle: &RuhId| handle.0 < layout.handle_count();
            if namespace.placement_handles.is_empty() || !namespace.placement_handles.iter().all(is_known) {
                return Err(format!("namespace {nsid} has placement handles that the device does not have"));
            }
            let controllers = namespace.attached.len();
            if !namespace.shared && controllers > 1 {
                return Err(format!("namespace {nsid} is private, but is attached to {controllers} controllers"));
            }
            extents.extend(&namespace.extents);
        }
        extents.sort_unstable_by_key(|extent| extent.first);
        let mut free_from = 0;
        for PageExtent { first, pages } in extents {
            if first < free_from || pages == 0 {
                return Err(format!("namespaces overlap at page {first}"));
            }
            free_from = first.saturating_add(pages);
        }
        if free_from > layout.logical_pages {
            return Err(format!("the namespaces use {free_from} pages, but the drive has {}", layout.logical_pages));
        }
        Ok(())
    }
}
