//! Directives (Base Specification, "Directives"): types, operations and the return parameters.
//!
//! The command dwords of Directive Send and Receive are in [`crate::command`]. The data placement directive has no
//! operations of its own; it is used through DTYPE and DSPEC of a write.

use bitfield_struct::bitfield;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

codes! {
    /// Directive Type.
    DirectiveType(u8, from_u8) {
        Identify = 0x0 => "Identify",
        Streams = 0x1 => "Streams",
        DataPlacement = 0x2 => "Data Placement",
    }
}

/// Identify directive, Directive Receive operation: Return Parameters, an [`IdentifyDirectiveParameters`].
pub const IDENTIFY_RETURN_PARAMETERS: u8 = 0x01;
/// Identify directive, Directive Send operation: Enable Directive.
pub const IDENTIFY_ENABLE_DIRECTIVE: u8 = 0x01;
/// Streams directive, Directive Receive operation: Return Parameters, a [`StreamsParameters`].
pub const STREAMS_RETURN_PARAMETERS: u8 = 0x01;
/// Streams directive, Directive Receive operation: Get Status.
pub const STREAMS_GET_STATUS: u8 = 0x02;
/// Streams directive, Directive Receive operation: Allocate Resources.
pub const STREAMS_ALLOCATE_RESOURCES: u8 = 0x03;
/// Streams directive, Directive Send operation: Release Identifier.
pub const STREAMS_RELEASE_IDENTIFIER: u8 = 0x01;
/// Streams directive, Directive Send operation: Release Resources.
pub const STREAMS_RELEASE_RESOURCES: u8 = 0x02;

/// Identify directive, Return Parameters data structure: bit n of each field is directive type n.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct IdentifyDirectiveParameters {
    /// Directives Supported.
    pub supported: DirectiveBits,
    /// Directives Enabled.
    pub enabled: DirectiveBits,
    /// Directives Persistent Across Controller Level Resets.
    pub persistent: DirectiveBits,
    /// Reserved.
    pub _reserved96: [u8; 4000],
}

layout! { IdentifyDirectiveParameters, 4096, supported @ 0, enabled @ 32, persistent @ 64 }

/// 32 bytes with a bit for each directive type.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct DirectiveBits {
    /// Directive types 0 to 7.
    pub types: DirectiveTypes,
    /// Reserved.
    pub _reserved1: [u8; 31],
}

layout! { DirectiveBits, 32, types @ 0 }

/// The first byte of [`DirectiveBits`].
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct DirectiveTypes {
    /// Identify Directive.
    pub id: bool,
    /// Streams Directive.
    pub sd: bool,
    /// Data Placement Directive.
    pub dpd: bool,
    #[bits(5)]
    __: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_placement_is_bit_2() {
        let mut parameters = IdentifyDirectiveParameters::default();
        parameters.enabled.types = DirectiveTypes::new().with_id(true).with_dpd(true);
        assert_eq!(parameters.as_bytes()[32], 0x05);
    }
}
