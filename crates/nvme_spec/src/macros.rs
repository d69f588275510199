//! The two macros the layouts are written with: a proof of size and offsets, and a table of code points.

/// Proves size, alignment and field offsets of a structure at compile time, and gives it an all-zero `Default`.
macro_rules! layout {
    ($name:ident, $size:expr $(, $field:ident @ $offset:expr)* $(,)?) => {
        const _: () = {
            assert!(size_of::<$name>() == $size);
            assert!(align_of::<$name>() == 1);
            $(assert!(core::mem::offset_of!($name, $field) == $offset);)*
        };

        impl Default for $name {
            /// All bytes zero.
            fn default() -> Self {
                zerocopy::FromZeros::new_zeroed()
            }
        }
    };
}

/// An enumeration of code points with the standard's name for each.
macro_rules! codes {
    ($(#[$meta:meta])* $name:ident($repr:ident, $from:ident) { $($variant:ident = $value:expr => $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr($repr)]
        pub enum $name {
            $(#[doc = concat!($text, ".")] $variant = $value,)*
        }

        impl $name {
            /// Every value, in the order of the standard's table.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The value with this code, or `None` if the standard reserves it or leaves it to the vendor.
            pub const fn $from(code: $repr) -> Option<$name> {
                match code {
                    $($value => Some($name::$variant),)*
                    _ => None,
                }
            }

            /// The code on the wire.
            pub const fn code(self) -> $repr {
                self as $repr
            }

            /// The standard's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
