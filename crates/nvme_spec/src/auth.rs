//! In-band authentication with DH-HMAC-CHAP (Base Specification, "NVMe In-band Authentication").
//! The module has the headers and codes of the messages that Authentication Send and Receive carry.
//!
//! Values of variable length follow the headers, which contain their lengths. The module computes
//! no values.

use zerocopy::little_endian::{U16, U32};

/// Security Protocol of the NVMe authentication, assigned to NVM Express.
pub const SECURITY_PROTOCOL: u8 = 0xe9;
/// SP Specific 0 and SP Specific 1 of the NVMe authentication.
pub const SECURITY_PROTOCOL_SPECIFIC: u8 = 0x01;
/// Authentication type of messages common to all protocols, Negotiate and the Failures.
pub const AUTH_TYPE_COMMON: u8 = 0x00;
/// Authentication type of DH-HMAC-CHAP messages.
pub const AUTH_TYPE_DHCHAP: u8 = 0x01;
/// Authentication protocol identifier of DH-HMAC-CHAP, in a protocol descriptor.
pub const AUTH_ID_DHCHAP: u8 = 0x01;

layout! {
    MessageId(u8, from_u8) {
        Negotiate = 0x00 => "AUTH_Negotiate",
        Challenge = 0x01 => "DH-HMAC-CHAP_Challenge",
        Reply = 0x02 => "DH-HMAC-CHAP_Reply",
        Success1 = 0x03 => "DH-HMAC-CHAP_Success1",
        Success2 = 0x04 => "DH-HMAC-CHAP_Success2",
        Failure2 = 0xf0 => "AUTH_Failure2",
        Failure1 = 0xf1 => "AUTH_Failure1",
    }

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

layout! {
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
    /// The length of a public value in bytes, or 0 for the NULL group.
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

layout! {
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

/// The only reason code of the failure messages, authentication failure.
pub const REASON_AUTHENTICATION_FAILURE: u8 = 0x01;

layout! {
    /// First bytes of every message.
    MessageHeader(6) {
        auth_type @ 0: u8 => "Authentication type, [`AUTH_TYPE_COMMON`] or [`AUTH_TYPE_DHCHAP`].",
        auth_id @ 1: u8 => "Message identifier, a [`MessageId`].",
        _reserved2 @ 2: [u8; 2],
        t_id @ 4: U16 => "Transaction identifier.",
    }
}

impl MessageId {
    /// Authentication type of the message. Negotiation and failures belong to no protocol.
    pub fn auth_type(self) -> u8 {
        match self {
            MessageId::Negotiate | MessageId::Failure1 | MessageId::Failure2 => AUTH_TYPE_COMMON,
            _ => AUTH_TYPE_DHCHAP,
        }
    }
}

impl MessageHeader {
    /// Builds the header of a message of a transaction.
    pub fn new(kind: MessageId, transaction: u16) -> MessageHeader {
        MessageHeader {
            auth_type: kind.auth_type(),
            auth_id: kind.code(),
            t_id: transaction.into(),
            ..MessageHeader::default()
        }
    }
}

layout! {
    /// AUTH_Negotiate, `napd` [`ProtocolDescriptor`]s follow.
    Negotiate(8) {
        header @ 0: MessageHeader => "Type, identifier and transaction.",
        sc_c @ 6: u8 => "Secure channel concatenation (0 none, else for TLS).",
        napd @ 7: u8 => "Number of authentication protocol descriptors.",
    }

    /// Authentication protocol descriptor of DH-HMAC-CHAP.
    ProtocolDescriptor(64) {
        auth_id @ 0: u8 => "Authentication protocol identifier, [`AUTH_ID_DHCHAP`].",
        _reserved1 @ 1: u8,
        halen @ 2: u8 => "Number of hash function identifiers.",
        dhlen @ 3: u8 => "Number of DH group identifiers.",
        idlist @ 4: [u8; 60] => "Hash function identifiers, and DH group identifiers from byte 30 on.",
    }
}

/// Start of the DH group identifiers in [`ProtocolDescriptor::idlist`].
pub const IDLIST_DH_GROUPS: usize = 30;

layout! {
    /// DH-HMAC-CHAP_Challenge, followed by the challenge value (`hl` bytes) and the DH public value
    /// (`dhvlen` bytes).
    Challenge(16) {
        header @ 0: MessageHeader => "Type, identifier and transaction.",
        hl @ 6: u8 => "Hash length, bytes.",
        _reserved7 @ 7: u8,
        hash_id @ 8: u8 => "Hash function identifier, a [`HashId`].",
        dhg_id @ 9: u8 => "DH group identifier, a [`DhGroupId`].",
        dhvlen @ 10: U16 => "DH value length, bytes.",
        seqnum @ 12: U32 => "Sequence number.",
    }

    /// DH-HMAC-CHAP_Reply. The response value (`hl` bytes), the challenge value (`hl` bytes, zeroes
    /// unless `cvalid`) and the DH public value (`dhvlen` bytes) follow.
    Reply(16) {
        header @ 0: MessageHeader => "Type, identifier and transaction.",
        hl @ 6: u8 => "Hash length, bytes.",
        _reserved7 @ 7: u8,
        cvalid @ 8: u8 => "Challenge valid, 1 if the host authenticates the controller as well.",
        _reserved9 @ 9: u8,
        dhvlen @ 10: U16 => "DH value length, bytes.",
        seqnum @ 12: U32 => "Sequence number, 0 if the host sends no challenge.",
    }

    /// DH-HMAC-CHAP_Success1. The response value (`hl` bytes) follows if `rvalid`.
    Success1(16) {
        header @ 0: MessageHeader => "Type, identifier and transaction.",
        hl @ 6: u8 => "Hash length, bytes.",
        _reserved7 @ 7: u8,
        rvalid @ 8: u8 => "Response valid.",
        _reserved9 @ 9: [u8; 7],
    }

    /// DH-HMAC-CHAP_Success2.
    Success2(16) {
        header @ 0: MessageHeader => "Type, identifier and transaction.",
        _reserved6 @ 6: [u8; 10],
    }

    /// AUTH_Failure1 (from the controller) and AUTH_Failure2 (from the host).
    Failure(8) {
        header @ 0: MessageHeader => "Type, identifier and transaction.",
        rc @ 6: u8 => "Reason code, [`REASON_AUTHENTICATION_FAILURE`].",
        rce @ 7: u8 => "Reason code explanation, a [`FailureReason`].",
    }
}
