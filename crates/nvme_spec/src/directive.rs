//! Directives (Base Specification, "Directives"), with their types, operations and return
//! parameters.
//!
//! [`crate::command`] has the command dwords of Directive Send and Receive. The data placement
//! directive has no operations. Writes use it through DTYPE and DSPEC.

layout! {
    /// Directive Type.
    DirectiveType(u8, from_u8) {
        Identify = 0x0 => "Identify",
        Streams = 0x1 => "Streams",
        DataPlacement = 0x2 => "Data Placement",
    }
}

/// Identify directive, Directive Receive operation, Return Parameters, an
/// [`IdentifyDirectiveParameters`].
pub const IDENTIFY_RETURN_PARAMETERS: u8 = 0x01;
/// Identify directive, Directive Send operation, Enable Directive.
pub const IDENTIFY_ENABLE_DIRECTIVE: u8 = 0x01;
/// Streams directive, Directive Receive operation, Return Parameters. This crate has no type for
/// its data.
pub const STREAMS_RETURN_PARAMETERS: u8 = 0x01;
/// Streams directive, Directive Receive operation, Get Status.
pub const STREAMS_GET_STATUS: u8 = 0x02;
/// Streams directive, Directive Receive operation, Allocate Resources.
pub const STREAMS_ALLOCATE_RESOURCES: u8 = 0x03;
/// Streams directive, Directive Send operation, Release Identifier.
pub const STREAMS_RELEASE_IDENTIFIER: u8 = 0x01;
/// Streams directive, Directive Send operation, Release Resources.
pub const STREAMS_RELEASE_RESOURCES: u8 = 0x02;

layout! {
    /// Identify directive, Return Parameters data structure. Bit n of each field is directive type
    /// n.
    IdentifyDirectiveParameters(4096) {
        /// Directives Supported.
        supported @ 0: DirectiveBits,
        /// Directives Enabled.
        enabled @ 32: DirectiveBits,
        /// Directives Persistent Across Controller Level Resets.
        persistent @ 64: DirectiveBits,
        _reserved96 @ 96: [u8; 4000],
    }

    /// 32 bytes with a bit for each directive type.
    DirectiveBits(32) {
        /// Directive types 0 to 7.
        types @ 0: DirectiveTypes,
        _reserved1 @ 1: [u8; 31],
    }

    /// The first byte of [`DirectiveBits`].
    DirectiveTypes(u8) {
        /// Identify Directive.
        id: bool,
        /// Streams Directive.
        sd: bool,
        /// Data Placement Directive.
        dpd: bool,
        __(5): u8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zerocopy::IntoBytes;

    #[test]
    fn data_placement_is_bit_2() {
        let mut parameters = IdentifyDirectiveParameters::default();
        parameters.enabled.types = DirectiveTypes::new().with_id(true).with_dpd(true);
        assert_eq!(parameters.as_bytes()[32], 0x05);
    }
}
