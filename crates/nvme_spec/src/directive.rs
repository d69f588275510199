//! Directives (Base Specification, "Directives"), with their types, operations and return
//! parameters.
//!
//! [`crate::command`] has the command dwords of Directive Send and Receive. The data placement
//! directive has no operations. Writes use it through DTYPE and DSPEC.

layout! {
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

layout! {
    /// Identify directive, Return Parameters data structure. Bit n of each field is directive type
    /// n.
    IdentifyDirectiveParameters(4096) {
        supported @ 0: DirectiveBits => "Directives Supported.",
        enabled @ 32: DirectiveBits => "Directives Enabled.",
        persistent @ 64: DirectiveBits => "Directives Persistent Across Controller Level Resets.",
        _reserved96 @ 96: [u8; 4000],
    }

    /// 32 bytes with a bit for each directive type.
    DirectiveBits(32) {
        types @ 0: DirectiveTypes => "Directive types 0 to 7.",
        _reserved1 @ 1: [u8; 31],
    }

    /// The first byte of [`DirectiveBits`].
    DirectiveTypes(u8) {
        id: bool => "Identify Directive.",
        sd: bool => "Streams Directive.",
        dpd: bool => "Data Placement Directive.",
        __(5): u8,
    }
}
