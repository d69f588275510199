//! In-band authentication, the controller's side: DH-HMAC-CHAP (Base Specification, "DH-HMAC-CHAP Protocol").
//!
//! ```text
//! host: Negotiate ->              (hash functions and DH groups it can use)
//!                 <- Challenge    (hash, group, challenge C1, g^x)
//! host: Reply     ->              (response R1, g^y, and its own challenge C2 if it wants to know us)
//!                 <- Success1     (response R2 to C2)
//! host: Success2  ->              (only after C2)
//! ```
//!
//! The host's messages come by Authentication Send, ours go out by Authentication Receive. It is sans-I/O: messages in,
//! messages out. A mistake of the host becomes an AUTH_Failure1, after which the connection ends. What it does not do:
//! TLS concatenation (a host that asks for it is refused).

use std::sync::atomic::{AtomicU32, Ordering};

use nvme_spec::auth::{
    AUTH_ID_DHCHAP, Challenge, DhGroupId, Failure, FailureReason, HashId, IDLIST_DH_GROUPS, MessageHeader, MessageId,
    Negotiate, ProtocolDescriptor, REASON_AUTHENTICATION_FAILURE, Reply, Success1,
};
use zerocopy::{FromBytes, IntoBytes};

use dhchap::arithmetic::{self, KeyPair};

/// Largest message that a host may send: a reply with the longest digest and the longest public value is 1168 bytes.
pub const MESSAGE_BYTES_MAX: usize = 4096;

/// Hash functions, the one we like best first.
const HASHES: [HashId; 3] = [HashId::Sha512, HashId::Sha384, HashId::Sha256];

/// DH groups, the one we like best first: those as strong as the hashes need come before those that take more time, and
/// the NULL group, which does without, last.
const GROUPS: [DhGroupId; 6] = [
    DhGroupId::Ffdhe3072,
    DhGroupId::Ffdhe4096,
    DhGroupId::Ffdhe2048,
    DhGroupId::Ffdhe6144,
    DhGroupId::Ffdhe8192,
    DhGroupId::Null,
];

/// Who the two sides are and what they know.
#[derive(Clone)]
pub struct Credentials {
    /// NQN of the host.
    pub host_nqn: String,
    /// NQN of the subsystem that it connected to.
    pub subsystem_nqn: String,
    /// The key that the host answers with.
    pub host_key: Vec<u8>,
    /// The key that the controller answers with, if it can.
    pub controller_key: Option<Vec<u8>>,
}

/// One queue's authentication.
pub struct Authenticator {
    credentials: Credentials,
    step: Step,
    transaction: u16,
    authenticated: bool,
}

/// What comes next.
enum Step {
    /// The host has to negotiate.
    ExpectNegotiate,
    /// The host has to fetch the challenge.
    SendChallenge(Box<Offer>),
    /// The host has to reply.
    ExpectReply(Box<Offer>),
    /// The host has to fetch Success1.
    SendSuccess1 { hash: HashId, response: Option<Vec<u8>> },
    /// The host has to say that it is satisfied.
    ExpectSuccess2,
    /// The host has to fetch the failure.
    SendFailure(FailureReason),
    /// The connection is to end.
    Failed,
}

/// What the controller sends in its challenge, and needs to check the reply.
struct Offer {
    hash: HashId,
    group: DhGroupId,
    challenge: Vec<u8>,
    sequence: u32,
    keys: Option<KeyPair>,
}

/// Sequence numbers count up from a random start and are never 0.
fn next_sequence() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut start = [0; 4];
    arithmetic::random(&mut start);
    // The first call that finds 0 chooses the start; the counter comes back to 0 once in four billion challenges.
    let start = u32::from_ne_bytes(start).max(1);
    let _ = NEXT.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed);
    NEXT.fetch_add(1, Ordering::Relaxed).max(1)
}

impl Authenticator {
    /// Nothing is known of the host yet.
    pub fn new(credentials: Credentials) -> Authenticator {
        Authenticator {
            credentials,
            step: Step::ExpectNegotiate,
            transaction: 0,
            authenticated: false,
        }
    }

    /// Whether the host is who it says.
    pub fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// Whether the connection is to end.
    pub fn has_failed(&self) -> bool {
        matches!(self.step, Step::Failed)
    }

    /// A message of the host.
    pub fn send(&mut self, message: &[u8]) {
        let step = std::mem::replace(&mut self.step, Step::Failed);
        self.step = match self.next_step(step, message) {
            Ok(step) => step,
            Err(reason) => {
                self.authenticated = false;
                Step::SendFailure(reason)
            }
        };
    }

    fn next_step(&mut self, step: Step, message: &[u8]) -> Result<Step, FailureReason> {
        let (header, _) = MessageHeader::read_from_prefix(message).map_err(|_| FailureReason::IncorrectPayload)?;
        let wrong_message = FailureReason::IncorrectProtocolMessage;
        let kind = MessageId::from_u8(header.auth_id).ok_or(wrong_message)?;
        if header.auth_type != kind.auth_type() {
            return Err(wrong_message);
        }
        if kind != MessageId::Negotiate && header.t_id.get() != self.transaction {
            return Err(FailureReason::IncorrectPayload);
        }
        match (step, kind) {
            (Step::ExpectNegotiate, MessageId::Negotiate) => {
                self.transaction = header.t_id.get();
                Ok(Step::SendChallenge(Box::new(choose(message)?)))
            }
            (Step::ExpectReply(offer), MessageId::Reply) => self.check_reply(&offer, message),
            (Step::ExpectSuccess2, MessageId::Success2) => {
                self.authenticated = true;
                Ok(Step::ExpectNegotiate)
            }
            (_, MessageId::Failure2) => {
                self.authenticated = false;
                Ok(Step::Failed)
            }
            _ => Err(wrong_message),
        }
    }

    /// The message that the host fetches.
    pub fn receive(&mut self) -> Vec<u8> {
        match std::mem::replace(&mut self.step, Step::Failed) {
            Step::SendChallenge(offer) => {
                let message = self.challenge(&offer);
                self.step = Step::ExpectReply(offer);
                message
            }
            Step::SendSuccess1 { hash, response } => {
                // A host that did not ask who we are is content now; the next message is of a new transaction.
                self.authenticated |= response.is_none();
                self.step = match response {
                    None => Step::ExpectNegotiate,
                    Some(_) => Step::ExpectSuccess2,
                };
                self.success1(hash, response.as_deref())
            }
            Step::SendFailure(reason) => self.failure(reason),
            Step::ExpectNegotiate | Step::ExpectReply(_) | Step::ExpectSuccess2 | Step::Failed => {
                self.authenticated = false;
                self.failure(FailureReason::IncorrectProtocolMessage)
            }
        }
    }

    fn challenge(&self, offer: &Offer) -> Vec<u8> {
        let public = offer.keys.as_ref().map_or(&[][..], KeyPair::public);
        let challenge = Challenge {
            header: MessageHeader::new(MessageId::Challenge, self.transaction),
            hl: offer.hash.digest_length(),
            hash_id: offer.hash.code(),
            dhg_id: offer.group.code(),
            dhvlen: (public.len() as u16).into(),
            seqnum: offer.sequence.into(),
            ..Challenge::default()
        };
        [challenge.as_bytes(), &offer.challenge, public].concat()
    }

    fn success1(&self, hash: HashId, response: Option<&[u8]>) -> Vec<u8> {
        let success = Success1 {
            header: MessageHeader::new(MessageId::Success1, self.transaction),
            hl: hash.digest_length(),
            rvalid: u8::from(response.is_some()),
            ..Success1::default()
        };
        [success.as_bytes(), response.unwrap_or_default()].concat()
    }

    fn failure(&self, reason: FailureReason) -> Vec<u8> {
        let failure = Failure {
            header: MessageHeader::new(MessageId::Failure1, self.transaction),
            rc: REASON_AUTHENTICATION_FAILURE,
            rce: reason.code(),
        };
        failure.as_bytes().to_vec()
    }

    fn check_reply(&self, offer: &Offer, message: &[u8]) -> Result<Step, FailureReason> {
        let wrong_payload = FailureReason::IncorrectPayload;
        let (reply, values) = Reply::read_from_prefix(message).map_err(|_| wrong_payload)?;
        let hash_bytes = usize::from(offer.hash.digest_length());
        let public_bytes = usize::from(offer.group.public_value_length());
        let lengths = (usize::from(reply.hl), usize::from(reply.dhvlen.get()));
        if lengths != (hash_bytes, public_bytes) || values.len() < 2 * hash_bytes + public_bytes || reply.cvalid > 1 {
            return Err(wrong_payload);
        }
        let (response, values) = values.split_at(hash_bytes);
        let (host_challenge, values) = values.split_at(hash_bytes);
        let session_key = match &offer.keys {
            None => None,
            Some(keys) => Some(keys.session_key(&values[..public_bytes]).ok_or(wrong_payload)?),
        };
        let binding = Binding {
            hash: offer.hash,
            session_key: session_key.as_deref(),
            transaction: self.transaction,
        };
        let names = &self.credentials;
        let expected = binding.response(
            &names.host_key,
            &offer.challenge,
            offer.sequence,
            [b"HostHost", names.host_nqn.as_bytes(), names.subsystem_nqn.as_bytes()],
        );
        if !arithmetic::equal(response, &expected) {
            return Err(FailureReason::AuthenticationFailed);
        }
        if reply.cvalid == 0 {
            return Ok(Step::SendSuccess1 {
                hash: offer.hash,
                response: None,
            });
        }
        // The host wants to know who we are: it must not be able to make us answer our own challenge.
        let key = names
            .controller_key
            .as_ref()
            .ok_or(FailureReason::AuthenticationFailed)?;
        if host_challenge == offer.challenge || reply.seqnum.get() == 0 {
            return Err(wrong_payload);
        }
        let response = binding.response(
            key,
            host_challenge,
            reply.seqnum.get(),
            [b"Controller", names.subsystem_nqn.as_bytes(), names.host_nqn.as_bytes()],
        );
        Ok(Step::SendSuccess1 {
            hash: offer.hash,
            response: Some(response),
        })
    }
}

/// What the responses of one transaction are bound to.
struct Binding<'a> {
    hash: HashId,
    session_key: Option<&'a [u8]>,
    transaction: u16,
}

impl Binding<'_> {
    /// HMAC(key, Ca || S || T_ID || SC_C || role || name || 00h || other name), where Ca is the challenge, with a DH
    /// group HMAC(H(session key), challenge).
    fn response(&self, key: &[u8], challenge: &[u8], sequence: u32, [role, name, other]: [&[u8]; 3]) -> Vec<u8> {
        let augmented = match self.session_key {
            None => challenge.to_vec(),
            Some(session_key) => arithmetic::hmac(self.hash, &arithmetic::digest(self.hash, session_key), &[challenge]),
        };
        let parts: [&[u8]; 8] = [
            &augmented,
            &sequence.to_le_bytes(),
            &self.transaction.to_le_bytes(),
            &[0],
            role,
            name,
            &[0],
            other,
        ];
        arithmetic::hmac(self.hash, key, &parts)
    }
}

/// Chooses hash and group of those that the host can use.
fn choose(message: &[u8]) -> Result<Offer, FailureReason> {
    let wrong_payload = FailureReason::IncorrectPayload;
    let (negotiate, descriptors) = Negotiate::read_from_prefix(message).map_err(|_| wrong_payload)?;
    if negotiate.sc_c != 0 {
        return Err(FailureReason::SecureChannelConcatenationMismatch);
    }
    let descriptors = <[ProtocolDescriptor]>::ref_from_prefix_with_elems(descriptors, usize::from(negotiate.napd));
    let (descriptors, _) = descriptors.map_err(|_| wrong_payload)?;
    let usable = |descriptor: &&ProtocolDescriptor| descriptor.auth_id == AUTH_ID_DHCHAP;
    let descriptor = descriptors
        .iter()
        .find(usable)
        .ok_or(FailureReason::ProtocolNotUsable)?;
    let (hashes, groups) = descriptor.idlist.split_at(IDLIST_DH_GROUPS);
    let hashes = hashes.get(..usize::from(descriptor.halen)).ok_or(wrong_payload)?;
    let groups = groups.get(..usize::from(descriptor.dhlen)).ok_or(wrong_payload)?;
    let hash = HASHES.into_iter().find(|hash| hashes.contains(&hash.code()));
    let hash = hash.ok_or(FailureReason::HashNotUsable)?;
    let group = GROUPS.into_iter().find(|group| groups.contains(&group.code()));
    let group = group.ok_or(FailureReason::DhGroupNotUsable)?;
    let mut challenge = vec![0; usize::from(hash.digest_length())];
    arithmetic::random(&mut challenge);
    Ok(Offer {
        hash,
        group,
        challenge,
        sequence: next_sequence(),
        keys: KeyPair::new(group),
    })
}
