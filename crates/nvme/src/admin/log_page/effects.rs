//! Log pages about the supported log pages, commands and features of a controller.

use nvme_spec::identify::CommandSet;
use nvme_spec::log::{
    CommandEffects, CommandsSupportedAndEffects, FeatureIdentifiersSupportedAndEffects, FidSupportedAndEffects,
    LidSupportedAndEffects, SupportedLogPages,
};
use nvme_spec::{AdminOpcode, FeatureId, IoOpcode};

use crate::admin::features::FEATURES;
use crate::controller::{ControllerKind, HostTransport};
use crate::subsystem::Subsystem;

/// Command Submission and Execution. No other command may run on the same namespace.
const ALONE_ON_NAMESPACE: u8 = 1;
/// Command Submission and Execution. No other command may run on any namespace.
const ALONE_ON_SUBSYSTEM: u8 = 2;

const SUPPORTED: CommandEffects = CommandEffects::new().with_csupp(true);
const WRITES: CommandEffects = SUPPORTED.with_lbcc(true);

/// Admin commands of every controller.
const ADMIN: [(AdminOpcode, CommandEffects); 6] = [
    (AdminOpcode::GetLogPage, SUPPORTED.with_uss(true)),
    (AdminOpcode::Identify, SUPPORTED),
    (AdminOpcode::Abort, SUPPORTED),
    (AdminOpcode::SetFeatures, SUPPORTED.with_uss(true)),
    (AdminOpcode::GetFeatures, SUPPORTED.with_uss(true)),
    (AdminOpcode::AsynchronousEventRequest, SUPPORTED),
];

const ADMIN_OF_DRIVE: [(AdminOpcode, CommandEffects); 7] = [
    (AdminOpcode::NamespaceManagement, SUPPORTED.with_nic(true)),
    (AdminOpcode::NamespaceAttachment, SUPPORTED.with_nic(true)),
    (AdminOpcode::DeviceSelfTest, SUPPORTED),
    (AdminOpcode::DirectiveSend, SUPPORTED),
    (AdminOpcode::DirectiveReceive, SUPPORTED),
    (AdminOpcode::FormatNvm, WRITES.with_ncc(true).with_cse(ALONE_ON_NAMESPACE)),
    (AdminOpcode::Sanitize, WRITES.with_cse(ALONE_ON_SUBSYSTEM)),
];

const ADMIN_OF_PCIE: [(AdminOpcode, CommandEffects); 5] = [
    (AdminOpcode::DeleteIoSubmissionQueue, SUPPORTED),
    (AdminOpcode::CreateIoSubmissionQueue, SUPPORTED),
    (AdminOpcode::DeleteIoCompletionQueue, SUPPORTED),
    (AdminOpcode::CreateIoCompletionQueue, SUPPORTED),
    (AdminOpcode::DoorbellBufferConfig, SUPPORTED),
];

const ADMIN_OF_FABRICS: [(AdminOpcode, CommandEffects); 1] = [(AdminOpcode::KeepAlive, SUPPORTED)];

/// I/O commands of the NVM command set. Linux warns about any effect beyond these two, scopes
/// included.
const IO: [(IoOpcode, CommandEffects); 11] = [
    (IoOpcode::Flush, SUPPORTED),
    (IoOpcode::Write, WRITES),
    (IoOpcode::Read, SUPPORTED),
    (IoOpcode::WriteUncorrectable, WRITES),
    (IoOpcode::Compare, SUPPORTED),
    (IoOpcode::WriteZeroes, WRITES),
    (IoOpcode::DatasetManagement, WRITES),
    (IoOpcode::Verify, SUPPORTED),
    (IoOpcode::IoManagementReceive, SUPPORTED),
    (IoOpcode::Copy, WRITES),
    (IoOpcode::IoManagementSend, SUPPORTED),
];

impl Subsystem {
    pub(super) fn supported_pages(&self, id: u16) -> SupportedLogPages {
        let mut page = SupportedLogPages::default();
        for log in self.pages(id) {
            page.lid[usize::from(log.code())] = LidSupportedAndEffects::new().with_lsupp(true);
        }
        page
    }

    /// An unsupported command set has no I/O commands. It is not refused, because nvme-cli queries
    /// the zoned set on every controller with selectable command sets and stops at an error.
    pub(super) fn command_effects_page(&self, id: u16, command_set: u8) -> CommandsSupportedAndEffects {
        let controller = self.controller(id);
        let mut page = CommandsSupportedAndEffects::default();
        let mut put = |commands: &[(AdminOpcode, CommandEffects)]| {
            for (opcode, effects) in commands {
                page.acs[usize::from(opcode.code())] = *effects;
            }
        };
        put(&ADMIN);
        match controller.transport {
            HostTransport::Pcie => put(&ADMIN_OF_PCIE),
            HostTransport::Fabrics => put(&ADMIN_OF_FABRICS),
        }
        if controller.kind == ControllerKind::Io {
            put(&ADMIN_OF_DRIVE);
        }
        if controller.kind == ControllerKind::Io && command_set == CommandSet::Nvm.code() {
            for (opcode, effects) in IO {
                page.iocs[usize::from(opcode.code())] = effects;
            }
        }
        page
    }

    pub(super) fn feature_effects_page(&self, id: u16) -> FeatureIdentifiersSupportedAndEffects {
        let mut page = FeatureIdentifiersSupportedAndEffects::default();
        for feature in FEATURES.iter().filter(|feature| self.has_feature(id, feature.id)) {
            page.fid[usize::from(feature.id.code())] = FidSupportedAndEffects::new()
                .with_fsupp(true)
                .with_ncc(feature.id == FeatureId::NamespaceWriteProtectionConfig)
                .with_uss(feature.id == FeatureId::LatencyMonitor)
                .with_fsp(feature.scope);
        }
        page
    }
}
