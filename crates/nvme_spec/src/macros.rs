//! The macro that defines the layouts. The text after the name selects the kind of the type:
//!
//! ```text
//! Name(64) { field @ 0: type => "meaning", }    a structure of 64 bytes
//! Name(U16) { field(bits): type => "meaning", } bit fields of a word
//! Name(u8, from_u8) { Variant = 0 => "name", }  code points with the standard's names
//! ```
//!
//! A meaning that is too long for its row is a doc comment above the row.

/// Defines structures, bit fields and code points, with all derived items. See the module above.
macro_rules! layout {
    // A structure. Compile-time asserts prove its size, its alignment and every offset.
    (@($size:literal) $(#[$meta:meta])* $name:ident {
        $($(#[$about:meta])* $field:ident @ $offset:literal: $type:ty $(=> $text:literal)?,)*
    }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)]
        #[derive(zerocopy::Unaligned)]
        pub struct $name {
            $($(#[$about])* $(#[doc = $text])? #[doc = concat!("Offset ", $offset, ".")] pub $field: $type,)*
        }

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

    // Code points.
    (@($repr:ident, $from:ident) $(#[$meta:meta])* $name:ident {
        $($variant:ident = $value:expr => $text:literal,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr($repr)]
        pub enum $name {
            $(#[doc = concat!($text, ".")] $variant = $value,)*
        }

        impl $name {
            /// Every value, in the order of the standard's table.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The value with this code, or `None` for reserved and vendor specific codes.
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

    // Bit fields, from the lowest bit up. `bits` is optional if the type implies it, and `__` is
    // reserved. Bit fields over `u32` and `u64` are numbers that travel by value. Bit fields over
    // `u8` and the little-endian words are fields of structures.
    (@(u32) $($fields:tt)*) => { layout! { @word(u32) $($fields)* } };
    (@(u64) $($fields:tt)*) => { layout! { @word(u64) $($fields)* } };
    (@(u8) $($fields:tt)*) => { layout! { @stored(u8) $($fields)* } };
    (@(U16) $($fields:tt)*) => { layout! { @little_endian(u16, U16) $($fields)* } };
    (@(U32) $($fields:tt)*) => { layout! { @little_endian(u32, U32) $($fields)* } };
    (@(U64) $($fields:tt)*) => { layout! { @little_endian(u64, U64) $($fields)* } };
    (@little_endian($word:ident, $stored:ident) $($fields:tt)*) => {
        layout! {
            @stored($word, repr = zerocopy::little_endian::$stored, from = zerocopy::little_endian::$stored::new,
                into = zerocopy::little_endian::$stored::get)
            $($fields)*
        }
    };
    (@stored($($word:tt)*) $($fields:tt)*) => {
        layout! {
            @word($($word)*)
            #[derive(zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout)]
            #[derive(zerocopy::Unaligned)]
            $($fields)*
        }
    };
    (@word($($word:tt)*) $(#[$meta:meta])* $name:ident {
        $($(#[$about:meta])* $field:ident $(($bits:tt))?: $type:ident $(=> $text:literal)?,)*
    }) => {
        #[bitfield_struct::bitfield($($word)*)]
        #[derive(PartialEq, Eq)]
        $(#[$meta])*
        pub struct $name {
            $($(#[$about])* $(#[doc = $text])? $(#[bits($bits)])? pub $field: $type,)*
        }
    };

    // All items of one invocation, in order.
    ($($(#[$meta:meta])* $name:ident($($kind:tt)*) { $($members:tt)* })*) => {
        $(layout! { @($($kind)*) $(#[$meta])* $name { $($members)* } })*
    };
}
