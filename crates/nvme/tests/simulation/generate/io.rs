//! Random I/O commands: ranges, placement directives and copies.

use super::{Class, Generator, MIB};
use crate::simulation::entropy::Entropy;
use crate::simulation::model::{ALL, Model, NN, Namespace};
use crate::simulation::operation::{Command, Directive, Range};

impl<E: Entropy> Generator<E> {
    pub(super) fn nsid(&mut self, model: &Model, controller: u16) -> u32 {
        let active: Vec<u32> = model.formatted(controller, ALL);
        if active.is_empty() || self.mistake() {
            return match self.entropy.below(8) {
                0 => 0,
                1 => ALL,
                2 => NN + 1,
                3 => self.entropy.below(1 << 32) as u32,
                _ => self.entropy.between(1, 6) as u32,
            };
        }
        self.entropy.pick(&active)
    }

    pub(super) fn io_command(&mut self, class: Class, model: &Model, controller: u16, nsid: u32) -> Command {
        let namespace = model.active(controller, nsid);
        let range = self.range(model, namespace);
        match class {
            Class::Write => {
                Command::Write { nsid, range, placement: self.directive(model, nsid), fua: self.entropy.percent(10) }
            }
            Class::WriteZeroes => Command::WriteZeroes {
                nsid,
                range,
                // DTYPE has three bits here. The fourth bit belongs to another field.
                placement: Directive { kind: self.directive(model, nsid).kind & 7, ..self.directive(model, nsid) },
                fua: self.entropy.percent(10),
                deallocate: self.entropy.percent(50),
            },
            Class::Read => Command::Read { nsid, range },
            Class::Compare => Command::Compare { nsid, range, equal: self.entropy.percent(70) },
            Class::Verify => Command::Verify { nsid, range },
            Class::Uncorrectable => Command::WriteUncorrectable { nsid, range },
            Class::Dataset => {
                let count = self.entropy.pick(&[1, 1, 2, 3, 256]);
                let mut ranges = vec![range];
                while ranges.len() < count {
                    let mut next = self.range(model, namespace);
                    next.count = if self.mistake() { 0 } else { next.count.min(64) };
                    ranges.push(next);
                }
                Command::DatasetManagement { nsid, ranges, deallocate: self.entropy.percent(80) }
            }
            Class::Copy => self.copy(model, namespace, nsid),
            Class::HandleStatus => Command::HandleStatus {
                nsid,
                operation: if self.mistake() { self.entropy.pick(&[0, 2, 0xff]) } else { 1 },
                dwords: self.entropy.pick(&[4, 12, 100, 2044]),
            },
            Class::HandleUpdate => {
                let count = self.entropy.pick(&[1, 1, 2, 5]);
                let identifiers = (0..count).map(|_| self.identifier(model, nsid)).collect();
                let operation = if self.mistake() { self.entropy.pick(&[0, 2, 0xff]) } else { 1 };
                Command::HandleUpdate { nsid, operation, identifiers }
            }
            _ => unreachable!("{class:?} is not of I/O"),
        }
    }

    fn copy(&mut self, model: &Model, namespace: Option<&Namespace>, nsid: u32) -> Command {
        let count = if self.mistake() { self.entropy.between(1, 140) } else { self.entropy.between(1, 4) };
        let ranges = (0..count).map(|_| {
            let range = self.range(model, namespace);
            Range { count: range.count.min(65536), ..range }
        });
        Command::Copy {
            nsid,
            ranges: ranges.collect(),
            to: self.range(model, namespace).first,
            format: if self.mistake() { self.entropy.below(16) as u8 } else { 0 },
            placement: self.directive(model, nsid),
            fua: self.entropy.percent(10),
        }
    }

    fn range(&mut self, model: &Model, namespace: Option<&Namespace>) -> Range {
        let Some(namespace) = namespace else {
            return Range { first: self.entropy.below(100), count: self.entropy.between(1, 8) as u32 };
        };
        let (size, block_bytes) = (namespace.blocks.len() as u64, namespace.block_bytes());
        let per_page = (model.drive.page_bytes / block_bytes).max(1);
        let most = (self.large / block_bytes).max(1);
        let mut count = match self.entropy.below(5) {
            0 => 1,
            1 => per_page,
            2 => self.entropy.between(1, 2 * per_page),
            _ => self.entropy.between(1, most),
        };
        let reach = if self.entropy.percent(self.hot) { size.div_ceil(8) } else { size };
        let mut first = self.entropy.below(reach.max(1));
        if self.entropy.percent(50) {
            first -= first % per_page;
        }
        if self.mistake() {
            match self.entropy.below(5) {
                0 => first = size,
                1 => first = u64::MAX - self.entropy.below(10),
                2 => count = size + 1 - first.min(size),
                3 => count = (MIB / block_bytes) + self.entropy.between(1, 9),
                _ => count = 65536,
            }
        } else if first < size {
            count = count.min(size - first);
        }
        Range { first, count: count.clamp(1, 65536) as u32 }
    }

    fn directive(&mut self, model: &Model, nsid: u32) -> Directive {
        let kind = if self.mistake() {
            self.entropy.below(16) as u8
        } else if model.fdp.is_some() {
            self.entropy.pick(&[2, 2, 2, 0])
        } else {
            0
        };
        Directive { kind, specific: self.identifier(model, nsid) }
    }

    fn identifier(&mut self, model: &Model, nsid: u32) -> u16 {
        let Some(namespace) = model.namespaces.get(&nsid).filter(|_| !self.mistake()) else {
            return self.entropy.below(1 << 16) as u16;
        };
        let wrong = u64::from(self.mistake());
        let groups = model.configuration().groups;
        let group = if self.crowded && self.entropy.percent(95) {
            groups - 1
        } else {
            self.entropy.below(u64::from(groups) + wrong) as u16
        };
        let index = self.entropy.below(namespace.handles.len() as u64 + wrong);
        model.identifier(group, index as usize)
    }
}
