//! Confidence interval of a difference of two means.

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom. Above 30, the normal
/// distribution's is used.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
    2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
const NORMAL_95: f64 = 1.960;

pub fn mean(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "a mean of nothing");
    values.iter().sum::<f64>() / values.len() as f64
}

fn variance_of_mean(values: &[f64]) -> f64 {
    let (mean, count) = (mean(values), values.len() as f64);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / (count - 1.0) / count
}

/// The 95 % interval of mean(b) - mean(a) after Welch. `None` if a side has a single value.
pub fn of_difference(a: &[f64], b: &[f64]) -> Option<[f64; 2]> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let [of_a, of_b] = [a, b].map(variance_of_mean);
    let variance = of_a + of_b;
    let by_degrees = of_a.powi(2) / (a.len() - 1) as f64 + of_b.powi(2) / (b.len() - 1) as f64;
    let degrees = if by_degrees > 0.0 { variance.powi(2) / by_degrees } else { f64::INFINITY };
    // Rounded down, which makes the interval wider. The minimum is one degree of freedom.
    let index = (degrees.floor() as usize).max(1) - 1;
    let quantile = T_95.get(index).copied().unwrap_or(NORMAL_95);
    let (difference, half) = (mean(b) - mean(a), quantile * variance.sqrt());
    Some([difference - half, difference + half])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_welchs() {
        // Means 3 and 6, variances of the means 0.5, eight degrees of freedom: 3 +- 2.306 * 1.
        let [low, high] = of_difference(&[1.0, 2.0, 3.0, 4.0, 5.0], &[4.0, 5.0, 6.0, 7.0, 8.0]).expect("several");
        assert!((low - 0.694).abs() < 1e-9 && (high - 5.306).abs() < 1e-9, "{low} {high}");
        // One side has no variance, so the degrees of freedom are the other's.
        let [low, high] = of_difference(&[1.0, 1.0], &[1.0, 2.0, 3.0]).expect("several");
        let half = 4.303 * (1.0_f64 / 3.0).sqrt();
        assert!((low - (1.0 - half)).abs() < 1e-9 && (high - (1.0 + half)).abs() < 1e-9);
        assert_eq!(of_difference(&[1.0, 1.0], &[2.0, 2.0]), Some([1.0, 1.0]), "nothing varies");
        assert_eq!(of_difference(&[1.0], &[2.0, 3.0]), None);
    }
}
