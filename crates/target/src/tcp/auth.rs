//! In-band authentication, the controller's side: DH-HMAC-CHAP (Base Specification, "DH-HMAC-CHAP
//! Protocol").
//!
//! ```text
//! host: Negotiate ->              (hash functions and DH groups it can use)
//!                 <- Challenge    (hash, group, challenge C1, g^x)
//! host: Reply     ->              (response R1, g^y, challenge C2 to authenticate the controller)
//!                 <- Success1     (response R2 to C2)
//! host: Success2  ->              (only after C2)
//! ```
//!
//! The host's messages arrive by Authentication Send, ours leave by Authentication Receive. The
//! module is sans-I/O. A protocol error of the host becomes an AUTH_Failure1, after which the
//! connection ends. The costly exponentiations for the challenge and for the reply are values of
//! type [`DhJob`]. The owner takes each one, computes it on any thread, and returns it.
//! TLS concatenation is not implemented, and a host that requests it is refused.

use std::sync::atomic::{AtomicU32, Ordering};

use nvme_spec::auth::{
    AUTH_ID_DHCHAP, Challenge, DhGroupId, Failure, FailureReason, HashId, IDLIST_DH_GROUPS, MessageHeader, MessageId,
    Negotiate, ProtocolDescriptor, REASON_AUTHENTICATION_FAILURE, Reply, Success1,
};
use zerocopy::{FromBytes, IntoBytes};

use dhchap::arithmetic::{self, KeyPair};

/// Largest message that a host may send. A reply with the longest digest and the longest public
/// value has 1168 bytes.
pub const MESSAGE_BYTES_MAX: usize = 4096;
const _: () = assert!(size_of::<Reply>() + 2 * 64 + 1024 <= MESSAGE_BYTES_MAX, "the longest reply fits into a message");

/// Hash functions in order of preference.
const HASHES: [HashId; 3] = [HashId::Sha512, HashId::Sha384, HashId::Sha256];

/// DH groups in order of preference. Groups as strong as the hashes need come before slower ones.
/// The NULL group, without a DH exchange, comes last.
const GROUPS: [DhGroupId; 6] = [
    DhGroupId::Ffdhe3072,
    DhGroupId::Ffdhe4096,
    DhGroupId::Ffdhe2048,
    DhGroupId::Ffdhe6144,
    DhGroupId::Ffdhe8192,
    DhGroupId::Null,
];

/// Names and keys of the two sides.
#[derive(Clone)]
pub struct Credentials {
    pub host_nqn: String,
    /// NQN of the subsystem that the host connected to.
    pub subsystem_nqn: String,
    /// The key for the host's response.
    pub host_key: Vec<u8>,
    /// The key for the controller's response, if it has one.
    pub controller_key: Option<Vec<u8>>,
    /// The weakest DH group that the host may choose.
    pub group_min: DhGroupId,
}

/// Authentication state of one queue.
pub struct Authenticator {
    credentials: Credentials,
    step: AuthStep,
    transaction: u16,
    authenticated: bool,
}

/// The next step of the protocol.
enum AuthStep {
    ExpectNegotiate,
    /// A computation is due, or in progress if `None`.
    Compute(Option<DhJob>),
    /// The host has to fetch the challenge.
    SendChallenge(Box<ChallengeOffer>),
    ExpectReply(Box<ChallengeOffer>),
    /// The host has to fetch Success1.
    SendSuccess1 {
        hash: HashId,
        response: Option<Vec<u8>>,
    },
    /// The host has to send Success2.
    ExpectSuccess2,
    /// The host has to fetch the failure.
    SendFailure(FailureReason),
    /// The connection must end.
    Failed,
}

/// Content of the controller's challenge, also needed to check the reply.
struct ChallengeOffer {
    hash: HashId,
    group: DhGroupId,
    challenge: Vec<u8>,
    sequence: u32,
    keys: Option<KeyPair>,
}

/// A computation that must finish before the host can fetch the next message.
pub struct DhJob {
    offer: Box<ChallengeOffer>,
    /// The host's reply, with its response, challenge and public value. `None` for the first
    /// computation, which makes the key pair.
    reply: Option<Vec<u8>>,
    /// Result of the second computation. `None` afterwards means that the host's public value
    /// reveals the key.
    shared_secret: Option<Vec<u8>>,
}

impl DhJob {
    /// Returns whether the computation has an exponentiation. The NULL group has none.
    pub fn is_expensive(&self) -> bool {
        self.offer.group != DhGroupId::Null
    }

    /// Returns whether this is the first computation of a transaction.
    pub fn begins_transaction(&self) -> bool {
        self.reply.is_none()
    }

    pub fn run_dh(&mut self) {
        match (&self.reply, &self.offer.keys) {
            (None, _) => self.offer.keys = KeyPair::new(self.offer.group),
            (Some(reply), Some(keys)) => {
                let public_bytes = usize::from(self.offer.group.public_value_length());
                let public = self.offer.public_value(reply);
                assert_eq!(public.len(), public_bytes, "lengths were checked");
                self.shared_secret = keys.shared_secret(public);
            }
            (Some(_), None) => {}
        }
    }
}

impl ChallengeOffer {
    /// The host's public value in a reply whose lengths were checked.
    fn public_value<'a>(&self, reply: &'a [u8]) -> &'a [u8] {
        let digests = 2 * usize::from(self.hash.digest_length());
        &reply[size_of::<Reply>() + digests..][..usize::from(self.group.public_value_length())]
    }
}

/// Next sequence number. Numbers count up from a random start and are never 0.
fn next_sequence() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut start = [0; 4];
    arithmetic::random(&mut start);
    // The first call that finds 0 chooses the start. The counter returns to 0 once in four billion
    // challenges.
    let start = u32::from_ne_bytes(start).max(1);
    let _ = NEXT.compare_exchange(0, start, Ordering::Relaxed, Ordering::Relaxed);
    NEXT.fetch_add(1, Ordering::Relaxed).max(1)
}

impl Authenticator {
    /// Starts with a host that has not negotiated yet.
    pub fn new(credentials: Credentials) -> Authenticator {
        Authenticator { credentials, step: AuthStep::ExpectNegotiate, transaction: 0, authenticated: false }
    }

    /// Returns whether the host has authenticated.
    pub fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// Returns whether the connection must end.
    pub fn has_failed(&self) -> bool {
        matches!(self.step, AuthStep::Failed)
    }

    /// Processes a message of the host.
    pub fn send(&mut self, message: &[u8]) {
        let step = std::mem::replace(&mut self.step, AuthStep::Failed);
        self.step = match self.next_step(step, message) {
            Ok(step) => step,
            Err(reason) => self.failed(reason),
        };
    }

    /// Takes the computation that is due, if any. Return it to [`Authenticator::finish_dh_job`].
    pub fn take_dh_job(&mut self) -> Option<DhJob> {
        match &mut self.step {
            AuthStep::Compute(work) => work.take(),
            _ => None,
        }
    }

    /// Continues with the result of a computation.
    pub fn finish_dh_job(&mut self, work: DhJob) {
        assert!(matches!(self.step, AuthStep::Compute(None)), "it was taken away");
        assert_eq!(
            work.offer.keys.is_some(),
            work.is_expensive(),
            "the controller has a key pair exactly if the transaction has a DH group"
        );
        let next = match &work.reply {
            None => Ok(AuthStep::SendChallenge(work.offer)),
            Some(reply) => self.check_reply(&work.offer, reply, work.shared_secret.as_deref()),
        };
        self.step = next.unwrap_or_else(|reason| self.failed(reason));
    }

    fn failed(&mut self, reason: FailureReason) -> AuthStep {
        self.authenticated = false;
        AuthStep::SendFailure(reason)
    }

    fn next_step(&mut self, step: AuthStep, message: &[u8]) -> Result<AuthStep, FailureReason> {
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
            (AuthStep::ExpectNegotiate, MessageId::Negotiate) => {
                self.transaction = header.t_id.get();
                Ok(AuthStep::Compute(Some(DhJob {
                    offer: Box::new(choose(message, self.credentials.group_min)?),
                    reply: None,
                    shared_secret: None,
                })))
            }
            (AuthStep::ExpectReply(offer), MessageId::Reply) => {
                check_lengths(&offer, message)?;
                Ok(AuthStep::Compute(Some(DhJob { offer, reply: Some(message.to_vec()), shared_secret: None })))
            }
            (AuthStep::ExpectSuccess2, MessageId::Success2) => {
                self.authenticated = true;
                Ok(AuthStep::ExpectNegotiate)
            }
            (_, MessageId::Failure2) => {
                self.authenticated = false;
                Ok(AuthStep::Failed)
            }
            _ => Err(wrong_message),
        }
    }

    /// The message that the host fetches.
    pub fn receive(&mut self) -> Vec<u8> {
        match std::mem::replace(&mut self.step, AuthStep::Failed) {
            AuthStep::SendChallenge(offer) => {
                let message = self.challenge(&offer);
                self.step = AuthStep::ExpectReply(offer);
                message
            }
            AuthStep::SendSuccess1 { hash, response } => {
                // A host without a challenge is finished now. The next message begins a new
                // transaction.
                self.authenticated |= response.is_none();
                self.step = match response {
                    None => AuthStep::ExpectNegotiate,
                    Some(_) => AuthStep::ExpectSuccess2,
                };
                self.success1(hash, response.as_deref())
            }
            AuthStep::SendFailure(reason) => self.failure(reason),
            AuthStep::ExpectNegotiate
            | AuthStep::Compute(_)
            | AuthStep::ExpectReply(_)
            | AuthStep::ExpectSuccess2
            | AuthStep::Failed => {
                self.authenticated = false;
                self.failure(FailureReason::IncorrectProtocolMessage)
            }
        }
    }

    fn challenge(&self, offer: &ChallengeOffer) -> Vec<u8> {
        let public = offer.keys.as_ref().map_or(&[][..], KeyPair::public);
        assert_eq!(
            public.len(),
            usize::from(offer.group.public_value_length()),
            "the public value has the length of its group"
        );
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
        assert!(
            response.is_none_or(|response| response.len() == usize::from(hash.digest_length())),
            "the controller's response has the {} bytes of its hash",
            hash.digest_length()
        );
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

    fn check_reply(
        &self,
        offer: &ChallengeOffer,
        message: &[u8],
        shared_secret: Option<&[u8]>,
    ) -> Result<AuthStep, FailureReason> {
        let wrong_payload = FailureReason::IncorrectPayload;
        let hash_bytes = usize::from(offer.hash.digest_length());
        let (reply, values) = Reply::read_from_prefix(message).map_err(|_| wrong_payload)?;
        assert!(
            values.len() >= 2 * hash_bytes,
            "a checked reply has two values of {hash_bytes} bytes, not {} bytes",
            values.len()
        );
        let (response, values) = values.split_at(hash_bytes);
        let (host_challenge, _) = values.split_at(hash_bytes);
        if offer.keys.is_some() && shared_secret.is_none() {
            return Err(wrong_payload);
        }
        let binding = ResponseInputs { hash: offer.hash, shared_secret, transaction: self.transaction };
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
            return Ok(AuthStep::SendSuccess1 { hash: offer.hash, response: None });
        }
        // The host authenticates the controller. It must not be able to make the controller answer
        // its own challenge.
        let key = names.controller_key.as_ref().ok_or(FailureReason::AuthenticationFailed)?;
        if host_challenge == offer.challenge || reply.seqnum.get() == 0 {
            return Err(wrong_payload);
        }
        let response = binding.response(
            key,
            host_challenge,
            reply.seqnum.get(),
            [b"Controller", names.subsystem_nqn.as_bytes(), names.host_nqn.as_bytes()],
        );
        Ok(AuthStep::SendSuccess1 { hash: offer.hash, response: Some(response) })
    }
}

/// Values that bind a response to its transaction.
struct ResponseInputs<'a> {
    hash: HashId,
    shared_secret: Option<&'a [u8]>,
    transaction: u16,
}

impl ResponseInputs<'_> {
    /// HMAC(key, Ca || S || T_ID || SC_C || role || name || 00h || other name). Ca is the
    /// challenge, or HMAC(H(shared secret), challenge) with a DH group.
    fn response(&self, key: &[u8], challenge: &[u8], sequence: u32, [role, name, other]: [&[u8]; 3]) -> Vec<u8> {
        let augmented = match self.shared_secret {
            None => challenge.to_vec(),
            Some(shared_secret) => {
                arithmetic::hmac(self.hash, &arithmetic::digest(self.hash, shared_secret), &[challenge])
            }
        };
        let parts: [&[u8]; 8] =
            [&augmented, &sequence.to_le_bytes(), &self.transaction.to_le_bytes(), &[0], role, name, &[0], other];
        arithmetic::hmac(self.hash, key, &parts)
    }
}

/// Rejects a reply whose values do not have the lengths of the offer.
fn check_lengths(offer: &ChallengeOffer, message: &[u8]) -> Result<(), FailureReason> {
    let wrong_payload = FailureReason::IncorrectPayload;
    let (reply, values) = Reply::read_from_prefix(message).map_err(|_| wrong_payload)?;
    let hash_bytes = usize::from(offer.hash.digest_length());
    let public_bytes = usize::from(offer.group.public_value_length());
    let lengths = (usize::from(reply.hl), usize::from(reply.dhvlen.get()));
    if lengths != (hash_bytes, public_bytes) || values.len() < 2 * hash_bytes + public_bytes || reply.cvalid > 1 {
        return Err(wrong_payload);
    }
    Ok(())
}

/// Chooses the hash and group from those of the host. The key pair does not exist yet.
fn choose(message: &[u8], group_min: DhGroupId) -> Result<ChallengeOffer, FailureReason> {
    let wrong_payload = FailureReason::IncorrectPayload;
    let (negotiate, descriptors) = Negotiate::read_from_prefix(message).map_err(|_| wrong_payload)?;
    if negotiate.sc_c != 0 {
        return Err(FailureReason::SecureChannelConcatenationMismatch);
    }
    let descriptors = <[ProtocolDescriptor]>::ref_from_prefix_with_elems(descriptors, usize::from(negotiate.napd));
    let (descriptors, _) = descriptors.map_err(|_| wrong_payload)?;
    let usable = |descriptor: &&ProtocolDescriptor| descriptor.auth_id == AUTH_ID_DHCHAP;
    let descriptor = descriptors.iter().find(usable).ok_or(FailureReason::ProtocolNotUsable)?;
    let (hashes, groups) = descriptor.idlist.split_at(IDLIST_DH_GROUPS);
    let hashes = hashes.get(..usize::from(descriptor.halen)).ok_or(wrong_payload)?;
    let groups = groups.get(..usize::from(descriptor.dhlen)).ok_or(wrong_payload)?;
    let hash = HASHES.into_iter().find(|hash| hashes.contains(&hash.code()));
    let hash = hash.ok_or(FailureReason::HashNotUsable)?;
    // Group identifiers increase with the length of the prime. 0 is the NULL group.
    let strong_enough = |group: &DhGroupId| group.code() >= group_min.code();
    let group = GROUPS.into_iter().filter(strong_enough).find(|group| groups.contains(&group.code()));
    let group = group.ok_or(FailureReason::DhGroupNotUsable)?;
    let mut challenge = vec![0; usize::from(hash.digest_length())];
    arithmetic::random(&mut challenge);
    Ok(ChallengeOffer { hash, group, challenge, sequence: next_sequence(), keys: None })
}
