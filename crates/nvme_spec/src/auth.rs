//! In-band authentication with DH-HMAC-CHAP (Base Specification, "NVMe In-band Authentication"): the headers of the
//! messages that Authentication Send and Receive carry, and their codes.
//!
//! Values of variable length follow the headers; their lengths are in the headers. Nothing is computed here.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Security Protocol of the NVMe authentication, assigned to NVM Express.
pub const SECURITY_PROTOCOL: u8 = 0xe9;
/// SP Specific 0 and SP Specific 1 of the NVMe authentication.
pub const SECURITY_PROTOCOL_SPECIFIC: u8 = 0x01;
/// Authentication type of messages common to all protocols: Negotiate and the Failures.
pub const AUTH_TYPE_COMMON: u8 = 0x00;
/// Authentication type of DH-HMAC-CHAP messages.
pub const AUTH_TYPE_DHCHAP: u8 = 0x01;
/// Authentication protocol identifier of DH-HMAC-CHAP, in a protocol descriptor.
pub const AUTH_ID_DHCHAP: u8 = 0x01;

codes! {
    /// Message identifier.
    MessageId(u8, from_u8) {
        Negotiate = 0x00 => "AUTH_Negotiate",
        Challenge = 0x01 => "DH-HMAC-CHAP_Challenge",
        Reply = 0x02 => "DH-HMAC-CHAP_Reply",
        Success1 = 0x03 => "DH-HMAC-CHAP_Success1",
        Success2 = 0x04 => "DH-HMAC-CHAP_Success2",
        Failure2 = 0xf0 => "AUTH_Failure2",
        Failure1 = 0xf1 => "AUTH_Failure1",
    }
}

codes! {
    /// Hash function identifier.
    HashId(u8, from_u8) {
        Sha256 = 1 => "SHA-256",
        Sha384 = 2 => "SHA-384",
        Sha512 = 3 => "SHA-512",
    }
}

impl HashId {
    /// The length of a digest in bytes.
    pub const fn digest_length(self) -> u8 {
        match self {
            HashId::Sha256 => 32,
            HashId::Sha384 => 48,
            HashId::Sha512 => 64,
        }
    }
}

codes! {
    /// Diffie-Hellman group identifier.
    DhGroupId(u8, from_u8) {
        Null = 0 => "NULL",
        Ffdhe2048 = 1 => "2048-bit DH group",
        Ffdhe3072 = 2 => "3072-bit DH group",
        Ffdhe4096 = 3 => "4096-bit DH group",
        Ffdhe6144 = 4 => "6144-bit DH group",
        Ffdhe8192 = 5 => "8192-bit DH group",
    }
}

impl DhGroupId {
    /// The length of a public value in bytes; 0 for the NULL group.
    pub const fn public_value_length(self) -> u16 {
        match self {
            DhGroupId::Null => 0,
            DhGroupId::Ffdhe2048 => 256,
            DhGroupId::Ffdhe3072 => 384,
            DhGroupId::Ffdhe4096 => 512,
            DhGroupId::Ffdhe6144 => 768,
            DhGroupId::Ffdhe8192 => 1024,
        }
    }
}

codes! {
    /// Reason Code Explanation of AUTH_Failure1 and AUTH_Failure2.
    FailureReason(u8, from_u8) {
        AuthenticationFailed = 0x01 => "Authentication failed",
        ProtocolNotUsable = 0x02 => "Authentication protocol not usable",
        SecureChannelConcatenationMismatch = 0x03 => "Secure channel concatenation mismatch",
        HashNotUsable = 0x04 => "Hash function not usable",
        DhGroupNotUsable = 0x05 => "DH group not usable",
        IncorrectPayload = 0x06 => "Incorrect payload",
        IncorrectProtocolMessage = 0x07 => "Incorrect protocol message",
    }
}

/// The only reason code of the failure messages: authentication failure.
pub const REASON_AUTHENTICATION_FAILURE: u8 = 0x01;

/// What every message starts with.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct MessageHeader {
    /// Authentication type: [`AUTH_TYPE_COMMON`] or [`AUTH_TYPE_DHCHAP`].
    pub auth_type: u8,
    /// Message identifier: a [`MessageId`].
    pub auth_id: u8,
    /// Reserved.
    pub _reserved2: [u8; 2],
    /// Transaction identifier.
    pub t_id: U16,
}

layout! { MessageHeader, 6, auth_type @ 0, auth_id @ 1, t_id @ 4 }

impl MessageId {
    /// Authentication type of such messages: negotiation and failures belong to no protocol.
    pub fn auth_type(self) -> u8 {
        match self {
            MessageId::Negotiate | MessageId::Failure1 | MessageId::Failure2 => AUTH_TYPE_COMMON,
            _ => AUTH_TYPE_DHCHAP,
        }
    }
}

impl MessageHeader {
    /// Of a message of a transaction.
    pub fn new(kind: MessageId, transaction: u16) -> MessageHeader {
        MessageHeader {
            auth_type: kind.auth_type(),
            auth_id: kind.code(),
            t_id: transaction.into(),
            ..MessageHeader::default()
        }
    }
}

/// AUTH_Negotiate; `napd` [`ProtocolDescriptor`]s follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Negotiate {
    /// Type, identifier and transaction.
    pub header: MessageHeader,
    /// Secure channel concatenation: 0 none, else for TLS.
    pub sc_c: u8,
    /// Number of authentication protocol descriptors.
    pub napd: u8,
}

layout! { Negotiate, 8, header @ 0, sc_c @ 6, napd @ 7 }

/// Authentication protocol descriptor of DH-HMAC-CHAP.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct ProtocolDescriptor {
    /// Authentication protocol identifier: [`AUTH_ID_DHCHAP`].
    pub auth_id: u8,
    /// Reserved.
    pub _reserved1: u8,
    /// Number of hash function identifiers.
    pub halen: u8,
    /// Number of DH group identifiers.
    pub dhlen: u8,
    /// Hash function identifiers, then DH group identifiers. The groups start at byte 30 of this list.
    pub idlist: [u8; 60],
}

layout! { ProtocolDescriptor, 64, auth_id @ 0, halen @ 2, dhlen @ 3, idlist @ 4 }

/// Where the DH group identifiers start in [`ProtocolDescriptor::idlist`].
pub const IDLIST_DH_GROUPS: usize = 30;

/// DH-HMAC-CHAP_Challenge; the challenge value (`hl` bytes) and the DH public value (`dhvlen` bytes) follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Challenge {
    /// Type, identifier and transaction.
    pub header: MessageHeader,
    /// Hash length, bytes.
    pub hl: u8,
    /// Reserved.
    pub _reserved7: u8,
    /// Hash function identifier: a [`HashId`].
    pub hash_id: u8,
    /// DH group identifier: a [`DhGroupId`].
    pub dhg_id: u8,
    /// DH value length, bytes.
    pub dhvlen: U16,
    /// Sequence number.
    pub seqnum: U32,
}

layout! { Challenge, 16, header @ 0, hl @ 6, hash_id @ 8, dhg_id @ 9, dhvlen @ 10, seqnum @ 12 }

/// DH-HMAC-CHAP_Reply; the response value (`hl` bytes), the challenge value (`hl` bytes, zeroes unless `cvalid`) and
/// the DH public value (`dhvlen` bytes) follow.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Reply {
    /// Type, identifier and transaction.
    pub header: MessageHeader,
    /// Hash length, bytes.
    pub hl: u8,
    /// Reserved.
    pub _reserved7: u8,
    /// Challenge valid: 1 if the host authenticates the controller as well.
    pub cvalid: u8,
    /// Reserved.
    pub _reserved9: u8,
    /// DH value length, bytes.
    pub dhvlen: U16,
    /// Sequence number; 0 if the host sends no challenge.
    pub seqnum: U32,
}

layout! { Reply, 16, header @ 0, hl @ 6, cvalid @ 8, dhvlen @ 10, seqnum @ 12 }

/// DH-HMAC-CHAP_Success1; the response value (`hl` bytes) follows if `rvalid`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Success1 {
    /// Type, identifier and transaction.
    pub header: MessageHeader,
    /// Hash length, bytes.
    pub hl: u8,
    /// Reserved.
    pub _reserved7: u8,
    /// Response valid.
    pub rvalid: u8,
    /// Reserved.
    pub _reserved9: [u8; 7],
}

layout! { Success1, 16, header @ 0, hl @ 6, rvalid @ 8 }

/// DH-HMAC-CHAP_Success2.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Success2 {
    /// Type, identifier and transaction.
    pub header: MessageHeader,
    /// Reserved.
    pub _reserved6: [u8; 10],
}

layout! { Success2, 16, header @ 0 }

/// AUTH_Failure1 (from the controller) and AUTH_Failure2 (from the host).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
pub struct Failure {
    /// Type, identifier and transaction.
    pub header: MessageHeader,
    /// Reason code: [`REASON_AUTHENTICATION_FAILURE`].
    pub rc: u8,
    /// Reason code explanation: a [`FailureReason`].
    pub rce: u8,
}

layout! { Failure, 8, header @ 0, rc @ 6, rce @ 7 }
