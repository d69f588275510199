//! NVMe over Fabrics (Base Specification, "Fabrics Command Set"). The module has the fabrics
//! commands as 64-byte capsules, their responses, the data of Connect, and the codes of the
//! discovery log.
//!
//! [`crate::log`] has the discovery log's structures, [`crate::auth`] the authentication messages,
//! and [`crate::tcp`] the PDUs of the TCP transport. The RDMA transport's private data is missing.

use zerocopy::little_endian::{U16, U32, U64};

use crate::command::SglDescriptor;

pub const OPCODE: u8 = 0x7f;

/// The well-known name of the discovery subsystem.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";

/// The longest NVMe Qualified Name, in bytes without the terminating zero.
pub const NQN_MAX_LENGTH: usize = 223;

/// Controller identifier that requests any controller in Connect (dynamic controller model).
pub const CNTLID_DYNAMIC: u16 = 0xffff;

/// Controller identifier that requests any available controller of the static controller model in
/// Connect.
pub const CNTLID_STATIC: u16 = 0xfffe;

layout! {
    FabricsCommandType(u8, from_u8) {
        PropertySet = 0x00 => "Property Set",
        Connect = 0x01 => "Connect",
        PropertyGet = 0x04 => "Property Get",
        AuthenticationSend = 0x05 => "Authentication Send",
        AuthenticationReceive = 0x06 => "Authentication Receive",
        Disconnect = 0x08 => "Disconnect",
    }

    /// Connect command (Base Specification 2.1, Figure 545).
    ConnectCommand(64) {
        opcode @ 0: u8 => "Opcode, [`OPCODE`].",
        flags @ 1: u8 => "Byte 1, PSDT in bits 7:6.",
        cid @ 2: U16 => "Command Identifier.",
        fctype @ 4: u8 => "Fabrics Command Type, [`FabricsCommandType::Connect`].",
        _reserved5 @ 5: [u8; 19],
        sgl1 @ 24: SglDescriptor => "SGL Descriptor 1, of the [`ConnectData`].",
        recfmt @ 40: U16 => "Record Format, 0.",
        qid @ 42: U16 => "Queue ID, 0 is the Admin queue.",
        sqsize @ 44: U16 => "Submission Queue Size, zeroes based.",
        cattr @ 46: ConnectAttributes => "Connect Attributes.",
        _reserved47 @ 47: u8,
        kato @ 48: U32 => "Keep Alive Timeout, milliseconds, 0 disables.",
        _reserved52 @ 52: [u8; 12],
    }

    /// Connect Attributes (CATTR).
    ConnectAttributes(u8) {
        prioclass(2): u8 => "Priority Class (0 urgent to 3 low).",
        dissqfc: bool => "Disable SQ Flow Control.",
        indivioqdels: bool => "Support Deletion of Individual I/O Queues.",
        connent: bool => "Connecting Entity. A discovery controller connects, not a host.",
        __(3): u8,
    }

    ConnectData(1024) {
        hostid @ 0: [u8; 16] => "Host Identifier.",
        cntlid @ 16: U16 => "Controller ID, which is [`CNTLID_DYNAMIC`], [`CNTLID_STATIC`] or a known controller's.",
        _reserved18 @ 18: [u8; 238],
        subnqn @ 256: [u8; 256] => "NVM Subsystem Qualified Name, padded with zeroes.",
        hostnqn @ 512: [u8; 256] => "Host NVMe Qualified Name, padded with zeroes.",
        _reserved768 @ 768: [u8; 256],
    }

    /// Authentication and Security Requirements (AUTHREQ).
    AuthenticationRequirements(U16) {
        __: bool,
        atr: bool => "Authentication Transaction Required, NVMe in-band authentication.",
        ascr: bool => "Authentication and Secure Channel Required.",
        __(13): u16,
    }

    PropertyGetCommand(64) {
        opcode @ 0: u8 => "Opcode, [`OPCODE`].",
        _reserved1 @ 1: u8,
        cid @ 2: U16 => "Command Identifier.",
        fctype @ 4: u8 => "Fabrics Command Type, [`FabricsCommandType::PropertyGet`].",
        _reserved5 @ 5: [u8; 35],
        attrib @ 40: PropertyAttributes => "Attributes.",
        _reserved41 @ 41: [u8; 3],
        ofst @ 44: U32 => "Offset of the property, a [`crate::register::Property`].",
        _reserved48 @ 48: [u8; 16],
    }

    /// Property Set command. Its response has no fields.
    PropertySetCommand(64) {
        opcode @ 0: u8 => "Opcode, [`OPCODE`].",
        _reserved1 @ 1: u8,
        cid @ 2: U16 => "Command Identifier.",
        fctype @ 4: u8 => "Fabrics Command Type, [`FabricsCommandType::PropertySet`].",
        _reserved5 @ 5: [u8; 35],
        attrib @ 40: PropertyAttributes => "Attributes.",
        _reserved41 @ 41: [u8; 3],
        ofst @ 44: U32 => "Offset of the property, a [`crate::register::Property`].",
        value @ 48: U64 => "Value, the upper half is reserved for a 4-byte property.",
        _reserved56 @ 56: [u8; 8],
    }

    /// ATTRIB of Property Get and Property Set.
    PropertyAttributes(u8) {
        size(3): u8 => "Property Size, see [`PROPERTY_SIZE_4`] and [`PROPERTY_SIZE_8`].",
        __(5): u8,
    }
}

pub const PROPERTY_SIZE_4: u8 = 0;
pub const PROPERTY_SIZE_8: u8 = 1;

layout! {
    AuthenticationCommand(64) {
        opcode @ 0: u8 => "Opcode, [`OPCODE`].",
        flags @ 1: u8 => "Byte 1, PSDT in bits 7:6.",
        cid @ 2: U16 => "Command Identifier.",
        fctype @ 4: u8 => "Fabrics Command Type.",
        _reserved5 @ 5: [u8; 19],
        sgl1 @ 24: SglDescriptor => "SGL Descriptor 1.",
        _reserved40 @ 40: u8,
        spsp0 @ 41: u8 => "SP Specific 0, 01h.",
        spsp1 @ 42: u8 => "SP Specific 1, 01h.",
        secp @ 43: u8 => "Security Protocol, [`crate::auth::SECURITY_PROTOCOL`].",
        length @ 44: U32 => "Transfer Length (Send) or Allocation Length (Receive), bytes.",
        _reserved48 @ 48: [u8; 16],
    }

    /// Discovery log, Transport Type.
    TransportType(u8, from_u8) {
        Unspecified = 0 => "Unspecified",
        Rdma = 1 => "RDMA Transport",
        FibreChannel = 2 => "Fibre Channel Transport",
        Tcp = 3 => "TCP Transport",
        IntraHost = 254 => "Intra-host Transport",
    }

    /// Discovery log, Address Family.
    AddressFamily(u8, from_u8) {
        NotSpecified = 0 => "Not specified",
        Ipv4 = 1 => "IPv4 address family",
        Ipv6 = 2 => "IPv6 address family",
        InfiniBand = 3 => "InfiniBand address family",
        FibreChannel = 4 => "Fibre Channel address family",
        IntraHost = 254 => "Intra-host Transport",
    }

    /// Discovery log, Subsystem Type.
    SubsystemType(u8, from_u8) {
        Referral = 1 => "Referral to another discovery service",
        Nvm = 2 => "NVM subsystem whose controllers may have attached namespaces",
        CurrentDiscovery = 3 => "Current discovery subsystem",
    }

    /// Discovery log, Transport Requirements.
    TransportRequirements(u8) {
        sc(2): u8 => "Secure Channel (0 not specified, 1 required, 2 not required).",
        dsqfc: bool => "Disabling SQ flow control is supported.",
        __(5): u8,
    }
}
