//! Bytes and bits of the structures, as the standard and its users write them.

mod register {
    use nvme_spec::register::*;

    #[test]
    fn configuration_as_linux_writes_it() {
        let cc = Cc::from_bits(0x0046_0061);
        assert!(cc.en());
        assert_eq!((cc.css(), cc.mps(), cc.ams(), cc.shn()), (CC_CSS_ALL, 0, 0, SHN_NONE));
        assert_eq!((cc.iosqes(), cc.iocqes()), (6, 4));
        let built = Cc::new().with_en(true).with_css(CC_CSS_ALL).with_iosqes(6).with_iocqes(4);
        assert_eq!(built.into_bits(), 0x0046_0061);
    }

    #[test]
    fn capabilities_bits() {
        assert_eq!(Cap::new().with_css(CSS_IOCS).into_bits(), 1 << 43);
        assert_eq!(Cap::new().with_css(CSS_NVM).into_bits(), 1 << 37);
        assert_eq!(Cap::new().with_crms(CRMS_CRWMS).into_bits(), 1 << 59);
        assert_eq!(Cap::new().with_mpsmin(1).into_bits(), 1 << 48);
        assert_eq!(Cap::new().with_mqes(1023).with_cqr(true).with_to(15).into_bits(), 0x0f01_03ff);
    }

    #[test]
    fn version_and_queue_attributes() {
        assert_eq!((Vs::V2_1.mjr(), Vs::V2_1.mnr(), Vs::V2_1.ter()), (2, 1, 0));
        assert_eq!(Aqa::new().with_asqs(31).with_acqs(63).into_bits(), 0x003f_001f);
    }
}

mod pci {
    use nvme_spec::pci::*;
    use zerocopy::IntoBytes;

    #[test]
    fn capability_bytes() {
        let msix = MsixCapability {
            cap_id: CAP_ID_MSIX,
            next: 0,
            mxc: MsixControl::new().with_ts(31).with_mxe(true),
            mtab: MsixLocation::new().with_bir(0).with_offset8(0x2000 / 8),
            mpba: MsixLocation::new().with_bir(0).with_offset8(0x3000 / 8),
        };
        assert_eq!(msix.as_bytes(), [0x11, 0, 31, 0x80, 0, 0x20, 0, 0, 0, 0x30, 0, 0]);
        assert_eq!(PxDeviceCap::new().with_flrc(true).into_bits().get(), 1 << 28);
        assert_eq!(PxDeviceCap::new().with_rer(true).into_bits().get(), 1 << 15);
        assert_eq!(PxDeviceControl::new().with_iflr(true).into_bits().get(), 1 << 15);
    }
}

mod command {
    use nvme_spec::Status;
    use nvme_spec::command::*;
    use zerocopy::little_endian::U16;
    use zerocopy::{FromBytes, IntoBytes};

    #[test]
    fn status_field_bytes() {
        let field = StatusField::from_status(Status::INVALID_FIELD).with_dnr(true);
        assert_eq!(field.as_bytes(), [0x04, 0x80]);
        assert_eq!(field.into_bits().get() >> 1, 0x4002);
        // Linux prints 0x4002, the field without the phase tag. DNR is bit 14 in that form.
        let field = StatusField::from_bits(U16::new(0x4002 << 1 | 1));
        assert_eq!(field.status(), Status::INVALID_FIELD);
        assert!(field.p());
        assert!(!field.m());
        let path = StatusField::from_status(Status::HOST_PATHING_ERROR).with_crd(2).with_m(true).with_p(true);
        assert_eq!(path.into_bits().get(), 1 | 0x70 << 1 | 3 << 9 | 2 << 12 | 1 << 14);
    }

    #[test]
    fn get_log_page_of_host_events() {
        let cdw10 = GetLogPageCdw10::new().with_lid(0x23).with_lsp(1).with_numdl(1023);
        assert_eq!(cdw10.into_bits(), 0x03ff_0123);
        assert!(GetLogPageCdw10::from_bits(0x03ff_8123).rae());
        let cdw11 = GetLogPageCdw11::from_bits(0x0001_0002);
        assert_eq!((cdw11.lsi(), cdw11.numdu()), (1, 2));
        assert_eq!(GetLogPageCdw14::new().with_ot(true).with_csi(2).into_bits(), 0x0280_0000);
    }

    #[test]
    fn write_with_placement_identifier() {
        let mut entry = SubmissionEntry { opcode: IoOpcode::Write.code(), ..SubmissionEntry::default() };
        entry.cid.set(0x1234);
        entry.nsid.set(1);
        entry.cdw12.set(ReadWriteCdw12::new().with_nlb(7).with_dtype(2).with_fua(true).into_bits());
        entry.cdw13.set(7 << 16);
        entry.set_prps(0x1000, 0x2000);
        let bytes = entry.as_bytes();
        assert_eq!(bytes[..8], [0x01, 0, 0x34, 0x12, 1, 0, 0, 0]);
        assert_eq!(bytes[24..40], [0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[48..56], [0x07, 0x00, 0x20, 0x40, 0, 0, 7, 0]);
        assert_eq!(SubmissionEntry::read_from_bytes(bytes).unwrap(), entry);
        assert_eq!((entry.prp1(), entry.prp2()), (0x1000, 0x2000));
    }

    #[test]
    fn write_zeroes_and_copy() {
        assert_eq!(WriteZeroesCdw12::new().with_nlb(255).with_deac(true).into_bits(), 0x0200_00ff);
        assert_eq!(ReadWriteCdw12::new().with_deac(true).into_bits(), 1 << 25);
        assert_eq!(WriteZeroesCdw12::new().with_nsz(true).into_bits(), 1 << 23);
        assert_eq!(ReadWriteCdw12::new().with_prinfo(0b1001).into_bits(), 1 << 29 | 1 << 26);
        assert_eq!(CopyCdw12::new().with_nr(3).with_desfmt(2).with_dtype(2).into_bits(), 0x0020_0203);
        assert_eq!(CopyCdw12::new().with_stcw(true).into_bits(), 1 << 24);
    }

    #[test]
    fn queue_creation_and_format() {
        assert_eq!(CreateQueueCdw10::new().with_qid(3).with_qsize(1023).into_bits(), 0x03ff_0003);
        let cdw11 = CreateIoCompletionQueueCdw11::new().with_pc(true).with_ien(true).with_iv(3);
        assert_eq!(cdw11.into_bits(), 0x0003_0003);
        assert_eq!(FormatNvmCdw10::new().with_ses(1).with_lbafl(2).with_lbafu(1).into_bits(), 0x1202);
        assert_eq!(SetFeaturesCdw10::new().with_fid(0x1d).with_sv(true).into_bits(), 0x8000_001d);
    }

    #[test]
    fn sgl_identifier_bytes() {
        let mut sgl = SglDescriptor::default();
        sgl.length.set(4096);
        sgl.id = SglIdentifier::new()
            .with_sgl_type(SglType::TransportDataBlock.code())
            .with_subtype(SGL_SUBTYPE_TRANSPORT_A);
        assert_eq!(sgl.as_bytes()[8..], [0, 0x10, 0, 0, 0, 0, 0, 0x5a]);
    }

    #[test]
    fn opcodes_round_trip() {
        for opcode in 0..=u8::MAX {
            if let Some(known) = AdminOpcode::from_u8(opcode) {
                assert_eq!(known.code(), opcode);
            }
            if let Some(known) = IoOpcode::from_u8(opcode) {
                assert_eq!(known.code(), opcode);
            }
        }
        assert_eq!(AdminOpcode::from_u8(0x06), Some(AdminOpcode::Identify));
        assert_eq!(AdminOpcode::from_u8(0x03), None);
    }
}

mod identify {
    use nvme_spec::identify::*;
    use zerocopy::IntoBytes;
    use zerocopy::little_endian::U16;

    #[test]
    fn attributes_that_fdp_needs() {
        let id = IdentifyController {
            ctratt: Ctratt::new().with_egs(true).with_fdps(true),
            oacs: Oacs::new().with_nms(true).with_dirs(true).with_dbcs(true),
            endgidmax: U16::new(1),
            ..IdentifyController::default()
        };
        let bytes = id.as_bytes();
        assert_eq!(bytes[96..100], [0x10, 0, 0x08, 0]);
        assert_eq!(bytes[256..258], [0x28, 0x01]);
        assert_eq!(bytes[340..342], [1, 0]);
    }

    #[test]
    fn single_bits() {
        assert_eq!(Sgls::new().with_sgls(1).with_offset(true).into_bits().get(), 1 << 20 | 1);
        assert_eq!(Sgls::new().with_transport_data_block(true).into_bits().get(), 1 << 21);
        assert_eq!(Oncs::new().with_nszs(true).into_bits().get(), 1 << 12);
        assert_eq!(Oaes::new().with_dlpcn(true).with_nsan(true).into_bits().get(), 0x8000_0100);
        assert_eq!(Sanicap::new().with_nodmmas(2).into_bits().get(), 2 << 30);
        assert_eq!(EntrySize::new().with_min(6).with_max(6).into_bits(), 0x66);
        assert_eq!(ExtendedLbaFormat::new().with_pif(2).into_bits().get(), 2 << 7);
    }
}

mod log {
    use nvme_spec::log::*;
    use zerocopy::IntoBytes;

    #[test]
    fn effects_bits() {
        let write = CommandEffects::new().with_csupp(true).with_lbcc(true).with_csp(SCOPE_NAMESPACE);
        assert_eq!(write.into_bits().get(), 0x0010_0003);
        assert_eq!(CommandEffects::new().with_cse(1).with_uss(true).into_bits().get(), 1 << 16 | 1 << 19);
        let fdp = FidSupportedAndEffects::new().with_fsupp(true).with_fsp(SCOPE_ENDURANCE_GROUP);
        assert_eq!(fdp.into_bits().get(), 0x0080_0001);
        let lid = LidSupportedAndEffects::new().with_lsupp(true).with_lidspf(2);
        assert_eq!(lid.as_bytes(), [1, 0, 2, 0]);
    }

    #[test]
    fn sanitize_bits() {
        assert_eq!(SanitizeStatus::new().with_sos(1).with_gde(true).into_bits().get(), 0x101);
    }
}

mod feature {
    use nvme_spec::feature::*;

    #[test]
    fn words() {
        assert_eq!(NumberOfQueues::new().with_nsq(7).with_ncq(3).into_bits(), 0x0003_0007);
        assert_eq!(TemperatureThreshold::from_bits(0x0010_0157).thsel(), 1);
        assert_eq!(ErrorRecovery::new().with_dulbe(true).into_bits(), 0x0001_0000);
        assert_eq!(AsyncEventConfiguration::new().with_dlpcn(true).into_bits(), 1 << 31);
        assert_eq!(AsyncEventConfiguration::new().with_ansan(true).into_bits(), 1 << 19);
        assert_eq!(AsyncEventConfiguration::new().with_nan(true).with_fan(true).into_bits(), 0x300);
        assert_eq!(FeatureId::from_u8(0x1d), Some(FeatureId::FlexibleDataPlacement));
    }
}

mod directive {
    use nvme_spec::directive::*;
    use zerocopy::IntoBytes;

    #[test]
    fn data_placement_is_bit_2() {
        let mut parameters = IdentifyDirectiveParameters::default();
        parameters.enabled.types = DirectiveTypes::new().with_id(true).with_dpd(true);
        assert_eq!(parameters.as_bytes()[32], 0x05);
    }
}

mod fdp {
    use nvme_spec::fdp::*;
    use zerocopy::IntoBytes;

    #[test]
    fn attributes_and_feature() {
        assert_eq!(Fdpa::new().with_rgif(3).with_fdpcv(true).into_bits(), 0x83);
        assert_eq!(FdpFeature::new().with_fdpe(true).with_fdpci(2).into_bits(), 0x0201);
        assert_eq!(FdpEventsFeatureCdw11::new().with_phndl(5).with_noet(255).into_bits(), 0x00ff_0005);
    }

    #[test]
    fn media_reallocated_lba_is_at_byte_20_of_the_event() {
        let mut moved = MediaReallocated::default();
        moved.sef.set_lbav(true);
        moved.nlbam.set(0x0102);
        moved.lba.set(0x1122_3344_5566_7788);
        let event = FdpEvent {
            event_type: FdpEventType::MediaReallocated.code(),
            type_specific: zerocopy::transmute!(moved),
            ..FdpEvent::default()
        };
        assert_eq!(event.as_bytes()[16..28], [1, 0, 2, 1, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        assert_eq!(event.media_reallocated(), moved);
    }

    #[test]
    fn ruh_status_bytes() {
        let mut ruhsd = RuhStatusDescriptor::default();
        ruhsd.pid.set(0x2001);
        ruhsd.ruhid.set(1);
        ruhsd.ruamw.set(0x4000);
        let bytes = ruhsd.as_bytes();
        assert_eq!(bytes[..4], [0x01, 0x20, 1, 0]);
        assert_eq!(bytes[8..12], [0, 0x40, 0, 0]);
    }
}

mod fabrics {
    use nvme_spec::fabrics::*;
    use zerocopy::IntoBytes;

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
        assert_eq!(FabricsCommandType::from_u8(bytes[4]), Some(FabricsCommandType::Connect));
        assert_eq!(AuthenticationRequirements::new().with_atr(true).into_bits().get(), 2);
    }
}

mod tcp {
    use nvme_spec::tcp::*;
    use zerocopy::IntoBytes;

    #[test]
    fn header_lengths_are_the_structures_sizes() {
        assert_eq!(usize::from(PduType::IcReq.header_length()), size_of::<IcReq>());
        assert_eq!(usize::from(PduType::CapsuleCmd.header_length()), size_of::<CapsuleCmd>());
        assert_eq!(usize::from(PduType::CapsuleResp.header_length()), size_of::<CapsuleResp>());
        assert_eq!(usize::from(PduType::R2t.header_length()), size_of::<R2t>());
        assert_eq!(usize::from(PduType::C2hTermReq.header_length()), size_of::<TermReq>());
    }

    #[test]
    fn data_header_bytes() {
        let mut ch = CommonHeader { pdu_type: PduType::C2hData.code(), hlen: 24, pdo: 24, ..CommonHeader::default() };
        ch.flags = PduFlags::new().with_last_pdu(true).with_success(true);
        ch.plen.set(24 + 4096);
        assert_eq!(ch.as_bytes(), [0x07, 0x0c, 0x18, 0x18, 0x18, 0x10, 0, 0]);
    }
}

mod status {
    use nvme_spec::status::*;

    #[test]
    fn display_has_words_and_numbers() {
        assert_eq!(Status::INVALID_FIELD.to_string(), "Invalid Field in Command (SCT 0h, SC 02h)");
        assert_eq!(Status::FDP_DISABLED.to_string(), "FDP Disabled (SCT 0h, SC 29h)");
        assert_eq!(Status::new(1, 0x29), Status::IOCS_NOT_SUPPORTED);
        assert_eq!(Status::new(2, 0xc1).name(), "Vendor Specific");
        assert_eq!(Status::new(0, 0x7f).name(), "Reserved");
    }

    #[test]
    fn fabrics_reuse_the_numbers() {
        assert_eq!(Status::CONFLICTING_ATTRIBUTES, Status::CONNECT_INCOMPATIBLE_FORMAT);
        assert_eq!(Status::CONNECT_INVALID_PARAMETERS.name_for_fabrics(), "Connect Invalid Parameters");
        assert_eq!(Status::CONNECT_INVALID_PARAMETERS.name(), "Attempted Write to Read Only Range");
        assert_eq!(Status::INVALID_LOG_PAGE.name_for_fabrics(), "Invalid Log Page");
    }

    #[test]
    fn packs_and_unpacks() {
        let status = Status::from_u16(0xfa81);
        assert_eq!((status.sct(), status.sc()), (2, 0x81));
        assert_eq!(status, Status::UNRECOVERED_READ_ERROR);
        assert!(Status::default().is_success());
    }
}
