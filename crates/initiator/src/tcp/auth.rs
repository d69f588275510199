//! Host side of DH-HMAC-CHAP (Base Specification, "DH-HMAC-CHAP Protocol").
//!
//! The code is independent of the controller's side in `target::tcp::auth`. Both follow the same
//! description, so a mistake in one of them makes authentication fail.

use nvme_spec::SubmissionEntry;
use nvme_spec::auth::{
    AUTH_ID_DHCHAP, AUTH_TYPE_DHCHAP, Challenge, DhGroupId, Failure, FailureReason, HashId, IDLIST_DH_GROUPS,
    MessageHeader, MessageId, Negotiate, ProtocolDescriptor, REASON_AUTHENTICATION_FAILURE, Reply, SECURITY_PROTOCOL,
    SECURITY_PROTOCOL_SPECIFIC, Success1, Success2,
};
use nvme_spec::fabrics::{AuthenticationCommand, FabricsCommandType, OPCODE};
use zerocopy::{FromBytes, IntoBytes};

use super::queue::{CommandData, TcpQueue};
use super::{HostOptions, InitiatorError, as_entry};
use dhchap::arithmetic::{self, KeyPair};

/// Buffer size for any message of a controller, bytes.
const RECEIVE_BYTES: u32 = 4096;

fn refused(why: impl Into<String>) -> InitiatorError {
    InitiatorError::Authentication(why.into())
}

fn command(kind: FabricsCommandType, bytes: u32) -> SubmissionEntry {
    as_entry(&AuthenticationCommand {
        opcode: OPCODE,
        fctype: kind.code(),
        spsp0: SECURITY_PROTOCOL_SPECIFIC,
        spsp1: SECURITY_PROTOCOL_SPECIFIC,
        secp: SECURITY_PROTOCOL,
        length: bytes.into(),
        ..AuthenticationCommand::default()
    })
}

fn send(queue: &mut TcpQueue, message: Vec<u8>) -> Result<(), InitiatorError> {
    let entry = command(FabricsCommandType::AuthenticationSend, message.len() as u32);
    queue.command(entry, CommandData::ToController(message))?.check("Authentication Send").map(|_| ())
}

fn receive(queue: &mut TcpQueue, transaction: u16, expected: MessageId) -> Result<Vec<u8>, InitiatorError> {
    let entry = command(FabricsCommandType::AuthenticationReceive, RECEIVE_BYTES);
    let done = queue.command(entry, CommandData::ToHost(vec![0; RECEIVE_BYTES as usize]))?;
    done.check("Authentication Receive")?;
    let (header, _) = MessageHeader::ref_from_prefix(&done.data).expect("it is longer than a header");
    if header.auth_id == MessageId::Failure1.code() {
        let (failure, _) = Failure::ref_from_prefix(&done.data).expect("it is longer than a failure");
        let reason = FailureReason::from_u8(failure.rce).map_or("without a reason", FailureReason::name);
        return Err(refused(format!("the controller refused it ({reason})")));
    }
    let is_expected = header.auth_type == AUTH_TYPE_DHCHAP && header.auth_id == expected.code();
    if !is_expected || header.t_id.get() != transaction {
        return Err(refused(format!("the controller sent another message than {expected}")));
    }
    Ok(done.data)
}

/// Common inputs of both responses.
struct Transaction {
    id: u16,
    hash: HashId,
    /// Session key, the hash of the shared secret. `None` with the NULL group.
    session_key: Option<Vec<u8>>,
}

impl Transaction {
    fn new(id: u16, offer: &ChallengeParameters<'_>, keys: Option<&KeyPair>) -> Result<Transaction, InitiatorError> {
        let session_key = |keys: &KeyPair| {
            let secret = keys.shared_secret(offer.public);
            let secret = secret.ok_or_else(|| refused("the controller's DH value is weak"))?;
            Ok(arithmetic::digest(offer.hash, &secret))
        };
        Ok(Transaction { id, hash: offer.hash, session_key: keys.map(session_key).transpose()? })
    }

    fn response(&self, key: &[u8], challenge: &[u8], sequence: u32, role: &str, names: [&str; 2]) -> Vec<u8> {
        let mut text = match &self.session_key {
            Some(session_key) => arithmetic::hmac(self.hash, session_key, &[challenge]),
            None => challenge.to_vec(),
        };
        text.extend(sequence.to_le_bytes());
        text.extend(self.id.to_le_bytes());
        // SC_C is 0, no secure channel.
        text.push(0);
        text.extend(role.bytes());
        text.extend(names[0].bytes());
        text.push(0);
        text.extend(names[1].bytes());
        arithmetic::hmac(self.hash, key, &[&text])
    }
}

/// Authenticates the host, and the controller if its secret is given.
pub fn authenticate(queue: &mut TcpQueue, options: &HostOptions) -> Result<(), InitiatorError> {
    let secret = options.secret.as_ref();
    let secret = secret.ok_or_else(|| refused("the controller requires it but no secret was given"))?;
    let controller_secret = options.controller_secret.as_ref();
    let controller_key = controller_secret.map(|secret| secret.key_of(&options.subsystem_nqn));
    let mut id = [0; 2];
    arithmetic::random(&mut id);
    let id = u16::from_le_bytes(id);

    send(queue, negotiate(options, id))?;
    let message = receive(queue, id, MessageId::Challenge)?;
    let offer = read_challenge(options, &message)?;
    let keys = KeyPair::new(offer.group);
    let transaction = Transaction::new(id, &offer, keys.as_ref())?;
    let names = [options.host_nqn.as_str(), options.subsystem_nqn.as_str()];
    let key = secret.key_of(&options.host_nqn);
    let response = transaction.response(&key, offer.challenge, offer.sequence, "HostHost", names);
    let ours = controller_key.is_some().then(|| OurChallenge::new(response.len()));
    let public = keys.as_ref().map_or(&[][..], KeyPair::public);
    let reply = Reply {
        header: MessageHeader::new(MessageId::Reply, id),
        hl: offer.hash.digest_length(),
        cvalid: ours.is_some().into(),
        dhvlen: (public.len() as u16).into(),
        seqnum: ours.as_ref().map_or(0, |ours| ours.sequence).into(),
        ..Reply::default()
    };
    // Without a challenge to the controller, the field contains zeroes.
    let challenge = ours.as_ref().map_or_else(|| vec![0; response.len()], |ours| ours.value.clone());
    send(queue, [reply.as_bytes(), &response, &challenge, public].concat())?;
    let message = receive(queue, id, MessageId::Success1)?;
    let (Some(key), Some(ours)) = (controller_key, ours) else {
        return Ok(());
    };
    let [host, subsystem] = names;
    let expected = transaction.response(&key, &ours.value, ours.sequence, "Controller", [subsystem, host]);
    check_controller(queue, id, &message, &expected)
}

struct OurChallenge {
    value: Vec<u8>,
    /// Sequence number, never 0, which means no challenge.
    sequence: u32,
}

impl OurChallenge {
    fn new(bytes: usize) -> OurChallenge {
        let (mut value, mut sequence) = (vec![0; bytes], [0; 4]);
        arithmetic::random(&mut value);
        arithmetic::random(&mut sequence);
        OurChallenge { value, sequence: u32::from_le_bytes(sequence).max(1) }
    }
}

/// Ends the transaction. Accepts the controller, or sends a failure message.
fn check_controller(queue: &mut TcpQueue, id: u16, message: &[u8], expected: &[u8]) -> Result<(), InitiatorError> {
    let (success, values) = Success1::ref_from_prefix(message).expect("it is longer than that");
    if success.rvalid != 1 || !arithmetic::equal(&values[..expected.len()], expected) {
        let failure = Failure {
            header: MessageHeader::new(MessageId::Failure2, id),
            rc: REASON_AUTHENTICATION_FAILURE,
            rce: FailureReason::AuthenticationFailed.code(),
        };
        // The controller disconnects after this message, so its answer is irrelevant.
        let _ = send(queue, failure.as_bytes().to_vec());
        return Err(refused("the controller did not prove its identity"));
    }
    let success = Success2 { header: MessageHeader::new(MessageId::Success2, id), ..Success2::default() };
    send(queue, success.as_bytes().to_vec())
}

fn negotiate(options: &HostOptions, transaction: u16) -> Vec<u8> {
    let negotiate = Negotiate { header: MessageHeader::new(MessageId::Negotiate, transaction), sc_c: 0, napd: 1 };
    let mut descriptor = ProtocolDescriptor {
        auth_id: AUTH_ID_DHCHAP,
        halen: options.hashes.len() as u8,
        dhlen: options.groups.len() as u8,
        ..ProtocolDescriptor::default()
    };
    for (place, hash) in descriptor.idlist.iter_mut().zip(&options.hashes) {
        *place = hash.code();
    }
    for (place, group) in descriptor.idlist[IDLIST_DH_GROUPS..].iter_mut().zip(&options.groups) {
        *place = group.code();
    }
    [negotiate.as_bytes(), descriptor.as_bytes()].concat()
}

struct ChallengeParameters<'a> {
    hash: HashId,
    group: DhGroupId,
    sequence: u32,
    challenge: &'a [u8],
    public: &'a [u8],
}

fn read_challenge<'a>(options: &HostOptions, message: &'a [u8]) -> Result<ChallengeParameters<'a>, InitiatorError> {
    let (challenge, values) = Challenge::ref_from_prefix(message).expect("it is longer than that");
    let hash = HashId::from_u8(challenge.hash_id).filter(|hash| options.hashes.contains(hash));
    let hash = hash.ok_or_else(|| refused("the controller chose a hash function that was not offered"))?;
    let group = DhGroupId::from_u8(challenge.dhg_id).filter(|group| options.groups.contains(group));
    let group = group.ok_or_else(|| refused("the controller chose a DH group that was not offered"))?;
    if challenge.hl != hash.digest_length() || challenge.dhvlen.get() != group.public_value_length() {
        return Err(refused("the lengths in the controller's challenge are wrong"));
    }
    let (value, rest) = values.split_at(hash.digest_length().into());
    Ok(ChallengeParameters {
        hash,
        group,
        sequence: challenge.seqnum.get(),
        challenge: value,
        public: &rest[..group.public_value_length().into()],
    })
}
