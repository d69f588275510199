//! NVMe over Fabrics (Base Specification, "Fabrics Command Set"): the fabrics commands as 64-byte capsules, their
//! responses, the data of Connect, and the codes of the discovery log.
//!
//! The discovery log's structures are in [`crate::log`], the authentication messages in [`crate::auth`], the PDUs of
//! the TCP transport in [`crate::tcp`]. The RDMA transport's private data is not here.

use bitfield_struct::bitfield;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::command::SglDescriptor;

/// The opcode of every fabrics command.
pub const OPCODE: u8 = 0x7f;

/// The well-known name of the discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// What a name made of a UUID starts with.
pub const UUID_NQN_PREFIX: &str = "nqn.2014-08.org.nvmexpress:uuid:";

/// The longest NVMe Qualified Name, in bytes without the terminating zero.
pub const NQN_MAX_LENGTH: usize = 223;

/// The controller identifier that asks Connect for any controller (dynamic controller model).
pub const CNTLID_DYNAMIC: u16 = 0xffff;

/// The controller identifier that asks Connect for any available controller of the static controller model.
pub const CNTLID_STATIC: u16 = 0xfffe;

/// The smallest Admin Max SQ Size a discovery entry may have.
pub const MIN_ADMIN_MAX_SQ_SIZE: u16 = 32;

codes! {
    /// Fabrics Command Type.
    FabricsCommandType(u8, from_u8) {
        PropertySet = 0x00 => "Property Set",
        Connect = 0x01 => "Connect",
        PropertyGet = 0x04 => "Property Get",
        AuthenticationSend = 0x05 => "Authentication Send",
        AuthenticationReceive = 0x06 => "Authentication Receive",
        Disconnect = 0x08 => "Disconnect",
    }
}

/// Fabrics command capsule, what all types have in common.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct FabricsCommand {
    /// Opcode: [`OPCODE`].
    pub opcode: u8,
    /// Byte 1: reserved, or PSDT for commands with data.
    pub flags: u8,
    /// Command Identifier.
    pub cid: U16,
    /// Fabrics Command Type: a [`FabricsCommandType`].
    pub fctype: u8,
    /// Reserved.
    pub _reserved5: [u8; 19],
    /// SGL Descriptor 1, for commands with data.
    pub sgl1: SglDescriptor,
    /// Type specific.
    pub specific: [u8; 24],
}

layout! { FabricsCommand, 64, opcode @ 0, flags @ 1, cid @ 2, fctype @ 4, sgl1 @ 24, specific @ 40 }

/// Connect command (Base Specification 2.1, Figure 545).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct ConnectCommand {
    /// Opcode: [`OPCODE`].
    pub opcode: u8,
    /// Byte 1: PSDT in bits 7:6.
    pub flags: u8,
    /// Command Identifier.
    pub cid: U16,
    /// Fabrics Command Type: [`FabricsCommandType::Connect`].
    pub fctype: u8,
    /// Reserved.
    pub _reserved5: [u8; 19],
    /// SGL Descriptor 1, of the [`ConnectData`].
    pub sgl1: SglDescriptor,
    /// Record Format: 0.
    pub recfmt: U16,
    /// Queue ID; 0 is the Admin queue.
    pub qid: U16,
    /// Submission Queue Size, zeroes based.
    pub sqsize: U16,
    /// Connect Attributes.
    pub cattr: ConnectAttributes,
    /// Reserved.
    pub _reserved47: u8,
    /// Keep Alive Timeout, milliseconds; 0 disables.
    pub kato: U32,
    /// Reserved.
    pub _reserved52: [u8; 12],
}

layout! { ConnectCommand, 64, opcode @ 0, cid @ 2, fctype @ 4, sgl1 @ 24, recfmt @ 40, qid @ 42, sqsize @ 44,
cattr @ 46, kato @ 48 }

/// CATTR: Connect Attributes.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct ConnectAttributes {
    /// Priority Class: 0 urgent to 3 low.
    #[bits(2)]
    pub prioclass: u8,
    /// Disable SQ Flow Control.
    pub dissqfc: bool,
    /// Support Deletion of Individual I/O Queues.
    pub indivioqdels: bool,
    /// Connecting Entity: a discovery controller connects, not a host.
    pub connent: bool,
    #[bits(3)]
    __: u8,
}

/// Connect command data.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct ConnectData {
    /// Host Identifier.
    pub hostid: [u8; 16],
    /// Controller ID: [`CNTLID_DYNAMIC`], [`CNTLID_STATIC`] or one the host knows.
    pub cntlid: U16,
    /// Reserved.
    pub _reserved18: [u8; 238],
    /// NVM Subsystem Qualified Name, padded with zeroes.
    pub subnqn: [u8; 256],
    /// Host NVMe Qualified Name, padded with zeroes.
    pub hostnqn: [u8; 256],
    /// Reserved.
    pub _reserved768: [u8; 256],
}

layout! { ConnectData, 1024, hostid @ 0, cntlid @ 16, subnqn @ 256, hostnqn @ 512 }

/// AUTHREQ: Authentication and Security Requirements.
#[bitfield(u16, repr = U16, from = U16::new, into = U16::get)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct AuthenticationRequirements {
    __: bool,
    /// Authentication Transaction Required: NVMe in-band authentication.
    pub atr: bool,
    /// Authentication and Secure Channel Required.
    pub ascr: bool,
    #[bits(13)]
    __: u16,
}

/// Property Get command.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PropertyGetCommand {
    /// Opcode: [`OPCODE`].
    pub opcode: u8,
    /// Reserved.
    pub _reserved1: u8,
    /// Command Identifier.
    pub cid: U16,
    /// Fabrics Command Type: [`FabricsCommandType::PropertyGet`].
    pub fctype: u8,
    /// Reserved.
    pub _reserved5: [u8; 35],
    /// Attributes.
    pub attrib: PropertyAttributes,
    /// Reserved.
    pub _reserved41: [u8; 3],
    /// Offset of the property: a [`crate::register::Property`].
    pub ofst: U32,
    /// Reserved.
    pub _reserved48: [u8; 16],
}

layout! { PropertyGetCommand, 64, opcode @ 0, cid @ 2, fctype @ 4, attrib @ 40, ofst @ 44 }

/// Property Set command. Its response has no fields of its own.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PropertySetCommand {
    /// Opcode: [`OPCODE`].
    pub opcode: u8,
    /// Reserved.
    pub _reserved1: u8,
    /// Command Identifier.
    pub cid: U16,
    /// Fabrics Command Type: [`FabricsCommandType::PropertySet`].
    pub fctype: u8,
    /// Reserved.
    pub _reserved5: [u8; 35],
    /// Attributes.
    pub attrib: PropertyAttributes,
    /// Reserved.
    pub _reserved41: [u8; 3],
    /// Offset of the property: a [`crate::register::Property`].
    pub ofst: U32,
    /// Value; the upper half is reserved for a 4-byte property.
    pub value: U64,
    /// Reserved.
    pub _reserved56: [u8; 8],
}

layout! { PropertySetCommand, 64, opcode @ 0, cid @ 2, fctype @ 4, attrib @ 40, ofst @ 44, value @ 48 }

/// ATTRIB of Property Get and Property Set.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct PropertyAttributes {
    /// Property Size: see [`PROPERTY_SIZE_4`] and [`PROPERTY_SIZE_8`].
    #[bits(3)]
    pub size: u8,
    #[bits(5)]
    __: u8,
}

/// The property is 4 bytes.
pub const PROPERTY_SIZE_4: u8 = 0;
/// The property is 8 bytes.
pub const PROPERTY_SIZE_8: u8 = 1;

/// Authentication Send and Authentication Receive commands.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct AuthenticationCommand {
    /// Opcode: [`OPCODE`].
    pub opcode: u8,
    /// Byte 1: PSDT in bits 7:6.
    pub flags: u8,
    /// Command Identifier.
    pub cid: U16,
    /// Fabrics Command Type.
    pub fctype: u8,
    /// Reserved.
    pub _reserved5: [u8; 19],
    /// SGL Descriptor 1.
    pub sgl1: SglDescriptor,
    /// Reserved.
    pub _reserved40: u8,
    /// SP Specific 0: 01h.
    pub spsp0: u8,
    /// SP Specific 1: 01h.
    pub spsp1: u8,
    /// Security Protocol: [`crate::auth::SECURITY_PROTOCOL`].
    pub secp: u8,
    /// Transfer Length (Send) or Allocation Length (Receive), bytes.
    pub length: U32,
    /// Reserved.
    pub _reserved48: [u8; 16],
}

layout! { AuthenticationCommand, 64, opcode @ 0, cid @ 2, fctype @ 4, sgl1 @ 24, spsp0 @ 41, spsp1 @ 42, secp @ 43,
length @ 44 }

codes! {
    /// Discovery log, Transport Type.
    TransportType(u8, from_u8) {
        Unspecified = 0 => "Unspecified",
        Rdma = 1 => "RDMA Transport",
        FibreChannel = 2 => "Fibre Channel Transport",
        Tcp = 3 => "TCP Transport",
        IntraHost = 254 => "Intra-host Transport",
    }
}

codes! {
    /// Discovery log, Address Family.
    AddressFamily(u8, from_u8) {
        NotSpecified = 0 => "Not specified",
        Ipv4 = 1 => "IPv4 address family",
        Ipv6 = 2 => "IPv6 address family",
        InfiniBand = 3 => "InfiniBand address family",
        FibreChannel = 4 => "Fibre Channel address family",
        IntraHost = 254 => "Intra-host Transport",
    }
}

codes! {
    /// Discovery log, Subsystem Type.
    SubsystemType(u8, from_u8) {
        Referral = 1 => "Referral to another discovery service",
        Nvm = 2 => "NVM subsystem whose controllers may have attached namespaces",
        CurrentDiscovery = 3 => "Current discovery subsystem",
    }
}

codes! {
    /// Discovery log, Security Type of the TCP transport (first byte of TSAS).
    SecurityType(u8, from_u8) {
        None = 0 => "No Security",
        Tls12 = 1 => "Transport Layer Security version 1.2",
        Tls13 = 2 => "Transport Layer Security version 1.3",
    }
}

/// Discovery log, Transport Requirements.
#[bitfield(u8)]
#[derive(PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct TransportRequirements {
    /// Secure Channel: 0 not specified, 1 required, 2 not required.
    #[bits(2)]
    pub sc: u8,
    /// Disabling SQ flow control is supported.
    pub dsqfc: bool,
    #[bits(5)]
    __: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_bytes() {
        let mut connect = ConnectCommand {
            opcode: OPCODE,
            fctype: FabricsCommandType::Connect.code(),
            cattr: ConnectAttributes::new().with_dissqfc(true),
            ..ConnectCommand::default()
        };
        connect.sqsize.set(31);
        connect.kato.set(5000);
        let bytes = connect.as_bytes();
        assert_eq!(bytes[40..52], [0, 0, 0, 0, 31, 0, 4, 0, 0x88, 0x13, 0, 0]);
        let command = FabricsCommand::read_from_bytes(bytes).unwrap();
        assert_eq!(
            FabricsCommandType::from_u8(command.fctype),
            Some(FabricsCommandType::Connect)
        );
        assert_eq!(AuthenticationRequirements::new().with_atr(true).into_bits().get(), 2);
    }
}
