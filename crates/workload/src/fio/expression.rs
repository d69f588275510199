//! Arithmetic in values, such as `size=(4*1024k)` or `bs=(2^12),(2^13)`.
//!
//! fio evaluates parentheses at the start of a number (`exp/expression-parser.y`, manual of fio,
//! "Parameter types"). They may hold `+ - * / % ^`, parentheses and suffixes. A suffix binds
//! tighter than `+` and looser than `*`, and `%` binds tightest. Times in expressions count
//! microseconds. fio truncates fractions. Here a fractional result is refused, because it is never
//! intended.
//!
//! Expressions in the input text are replaced by their values. Options then read the result.

use super::error::OptionError;

type Parsed<T> = Result<T, OptionError>;

/// Maximum nesting of parentheses.
const DEPTH_MAX: usize = 32;

/// Meaning of the suffixes in an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Suffixes {
    /// `k`, `m`, `g`, `t`, `p` with a factor of 1024 or 1000.
    Sizes {
        /// The factor of `k`.
        kilo: u32,
    },
    /// `us`, `ms`, `s`, `m`, `h`, `d`, in microseconds.
    Times,
}

impl Suffixes {
    fn factor(self, suffix: &str) -> Option<f64> {
        match self {
            Suffixes::Sizes { kilo } => {
                let letter = suffix.strip_suffix('b').unwrap_or(suffix);
                let power = "kmgtp".find(letter).filter(|_| letter.len() == 1)?;
                Some(f64::from(kilo).powi(power as i32 + 1))
            }
            Suffixes::Times => match suffix {
                "us" | "usec" => Some(1.0),
                "ms" | "msec" => Some(1e3),
                "s" | "sec" => Some(1e6),
                "m" => Some(6e7),
                "h" => Some(3.6e9),
                "d" => Some(8.64e10),
                _ => None,
            },
        }
    }
}

/// Replaces every outermost parenthesis of a value by its result. Times get the suffix `us`.
pub fn evaluate(text: &str, suffixes: Suffixes) -> Parsed<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('(') {
        out.push_str(&rest[..start]);
        let mut parser = ExpressionParser { text: &rest[start..], suffixes };
        let value = parser.primary(0)?;
        if value.fract() != 0.0 || !(0.0..=9_007_199_254_740_992.0).contains(&value) {
            return Err(OptionError::new(
                format!("the expression has the value {value}"),
                "Make it a whole number from 0 to 2^53",
            ));
        }
        out.push_str(&format!("{value}"));
        if suffixes == Suffixes::Times {
            out.push_str("us");
        }
        assert!(
            parser.text.len() < rest.len() - start,
            "an expression of {} bytes is not consumed",
            rest.len() - start
        );
        rest = parser.text;
    }
    out.push_str(rest);
    Ok(out)
}

/// Remaining text of an expression.
struct ExpressionParser<'a> {
    text: &'a str,
    suffixes: Suffixes,
}

impl ExpressionParser<'_> {
    /// Consumes one of these signs if it comes next.
    fn sign(&mut self, signs: &[char]) -> Option<char> {
        self.text = self.text.trim_start();
        let next = self.text.chars().next().filter(|next| signs.contains(next))?;
        self.text = &self.text[1..];
        Some(next)
    }

    fn sum(&mut self, depth: usize) -> Parsed<f64> {
        let mut value = self.scaled(depth)?;
        while let Some(sign) = self.sign(&['+', '-']) {
            let other = self.scaled(depth)?;
            value = if sign == '+' { value + other } else { value - other };
        }
        Ok(value)
    }

    /// Parses a product with its suffix.
    fn scaled(&mut self, depth: usize) -> Parsed<f64> {
        let mut value = self.product(depth)?;
        while let Some(factor) = self.suffix()? {
            value *= factor;
            // fio continues with the operators that bind tighter, as in (4k*2).
            while let Some(sign) = self.sign(&['*', '/']) {
                value = product_value(value, sign, self.power(depth)?)?;
            }
        }
        Ok(value)
    }

    fn suffix(&mut self) -> Parsed<Option<f64>> {
        self.text = self.text.trim_start();
        let end = self.text.find(|letter: char| !letter.is_ascii_alphabetic());
        let (suffix, rest) = self.text.split_at(end.unwrap_or(self.text.len()));
        if suffix.is_empty() {
            return Ok(None);
        }
        let factor = self.suffixes.factor(&suffix.to_lowercase()).ok_or_else(|| {
            OptionError::new(
                format!("`{suffix}` is not a suffix of an expression"),
                match self.suffixes {
                    Suffixes::Sizes { .. } => "Use k, m, g, t or p",
                    Suffixes::Times => "Use us, ms, s, m, h or d",
                },
            )
        })?;
        self.text = rest;
        Ok(Some(factor))
    }

    fn product(&mut self, depth: usize) -> Parsed<f64> {
        let mut value = self.power(depth)?;
        while let Some(sign) = self.sign(&['*', '/']) {
            value = product_value(value, sign, self.power(depth)?)?;
        }
        Ok(value)
    }

    fn power(&mut self, depth: usize) -> Parsed<f64> {
        let base = self.remainder(depth)?;
        match self.sign(&['^']) {
            Some(_) => Ok(base.powf(self.power(depth + 1)?)),
            None => Ok(base),
        }
    }

    fn remainder(&mut self, depth: usize) -> Parsed<f64> {
        let mut value = self.primary(depth)?;
        while self.sign(&['%']).is_some() {
            let other = self.primary(depth)?;
            if other == 0.0 {
                return Err(by_zero());
            }
            value %= other;
        }
        Ok(value)
    }

    /// Parses a number or a parenthesis.
    fn primary(&mut self, depth: usize) -> Parsed<f64> {
        if depth > DEPTH_MAX {
            return Err(OptionError::new("the expression is nested too deeply", "Write a simpler one"));
        }
        match self.sign(&['(', '-', '+']) {
            Some('(') => {
                let value = self.sum(depth + 1)?;
                match self.sign(&[')']) {
                    Some(_) => Ok(value),
                    None => Err(self.unreadable("`)`")),
                }
            }
            Some('-') => Ok(-self.primary(depth + 1)?),
            Some(_) => self.primary(depth + 1),
            None => self.number(),
        }
    }

    fn number(&mut self) -> Parsed<f64> {
        let hexadecimal = self.text.strip_prefix("0x").or_else(|| self.text.strip_prefix("0X"));
        let (digits, rest) = match hexadecimal {
            Some(digits) => digits.split_at(digits.find(|d: char| !d.is_ascii_hexdigit()).unwrap_or(digits.len())),
            None => {
                let end = self.text.find(|digit: char| !digit.is_ascii_digit() && digit != '.');
                self.text.split_at(end.unwrap_or(self.text.len()))
            }
        };
        let value = match hexadecimal {
            Some(_) => u64::from_str_radix(digits, 16).ok().map(|value| value as f64),
            None => digits.parse().ok(),
        };
        let value = value.ok_or_else(|| self.unreadable("a number"))?;
        self.text = rest;
        Ok(value)
    }

    fn unreadable(&self, wanted: &str) -> OptionError {
        let found = match self.text.chars().next() {
            Some(next) => format!("`{next}`"),
            None => "its end".to_owned(),
        };
        OptionError::new(format!("the expression has {found} where {wanted} belongs"), "Write it like (4*1024k)")
    }
}

fn product_value(value: f64, sign: char, other: f64) -> Parsed<f64> {
    match sign {
        '*' => Ok(value * other),
        _ if other == 0.0 => Err(by_zero()),
        _ => Ok(value / other),
    }
}

fn by_zero() -> OptionError {
    OptionError::new("the expression divides by zero", "Divide by another number")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Suffixes = Suffixes::Sizes { kilo: 1024 };

    #[test]
    fn expressions_are_fios() {
        for (text, value) in [
            ("(4*1024)", "4096"),
            ("(1+2*3)", "7"),
            ("((1+2)*3)", "9"),
            ("(2^12)", "4096"),
            ("(2^3^2)", "512"),
            ("(17%5)", "2"),
            ("(4+4k)", "4100"),
            ("(4*4k)", "16384"),
            ("(4k*2)", "8192"),
            ("((1+1)k)", "2048"),
            ("(8-2-1)", "5"),
            ("(0x10 + 1)", "17"),
            ("(3/2*2)", "3"),
            ("(2*4k),(4k)", "8192,4096"),
            ("(2*2k)/60:64k/40", "4096/60:64k/40"),
            ("4k", "4k"),
        ] {
            assert_eq!(evaluate(text, SIZES), Ok(value.to_owned()), "{text}");
        }
        assert_eq!(evaluate("(1s+5ms)", Suffixes::Times), Ok("1005000us".to_owned()));
        assert_eq!(evaluate("(30)", Suffixes::Times), Ok("30us".to_owned()));
    }

    #[test]
    fn what_is_no_expression_is_refused() {
        for (text, says) in [
            ("(4*", "its end"),
            ("(4", "`)`"),
            ("(1/0)", "divides by zero"),
            ("(1%0)", "divides by zero"),
            ("(3/2)", "1.5"),
            ("(1-2)", "-1"),
            ("(4q)", "`q`"),
            ("()", "a number"),
            ("(4,5)", "`,`"),
        ] {
            let complaint = evaluate(text, SIZES).expect_err(text);
            assert!(complaint.problem.contains(says), "{text}: {complaint:?}");
        }
        assert!(evaluate(&format!("{}1", "(".repeat(100_000)), SIZES).is_err(), "it does not overflow the stack");
    }
}
