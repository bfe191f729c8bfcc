//! A reader of the classic format, made from its grammar, with which the files are tested.

/// The header of a file.
#[derive(Debug)]
pub(super) struct File {
    pub(super) version: u8,
    pub(super) n_records: u64,
    /// Name, and length in the header.
    pub(super) dimensions: Vec<(String, u64)>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) variables: Vec<Variable>,
    pub(super) header_len: usize,
}

/// Name, type, count, big-endian values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) kind: u32,
    pub(super) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) dimensions: Vec<usize>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) kind: u32,
    pub(super) vsize: u64,
    pub(super) begin: u64,
}

struct Bytes<'a> {
    all: &'a [u8],
    at: usize,
}

impl Bytes<'_> {
    fn take(&mut self, n: usize) -> Vec<u8> {
        let taken = self.all[self.at..self.at + n].to_vec();
        self.at += n;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn u64(&mut self) -> u64 {
        u64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    fn number(&mut self) -> u64 {
        match self.all[3] {
            5 => self.u64(),
            _ => self.u32().into(),
        }
    }

    fn padded(&mut self, n: usize) -> Vec<u8> {
        let taken = self.take(n);
        let padding = self.take((4 - n % 4) % 4);
        assert!(padding.iter().all(|&byte| byte == 0));
        taken
    }

    fn name(&mut self) -> String {
        let len = self.number().try_into().unwrap();
        String::from_utf8(self.padded(len)).unwrap()
    }

    fn list<T>(&mut self, tag: u32, mut entry: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let (found, count) = (self.u32(), self.number());
        assert_eq!(found, if count == 0 { 0 } else { tag });
        (0..count).map(|_| entry(self)).collect()
    }

    fn attributes(&mut self) -> Vec<Attribute> {
        self.list(12, |bytes| {
            let (name, kind) = (bytes.name(), bytes.u32());
            let count = usize::try_from(bytes.number()).unwrap();
            Attribute {
                name,
                kind,
                bytes: bytes.padded(count * size(kind)),
            }
        })
    }
}

fn size(kind: u32) -> usize {
    [0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8][kind as usize]
}

impl File {
    pub(super) fn parse(all: &[u8]) -> File {
        let mut bytes = Bytes { all, at: 4 };
        assert_eq!(&all[..3], b"CDF");
        let n_records = bytes.number();
        let dimensions = bytes.list(10, |bytes| (bytes.name(), bytes.number()));
        let attributes = bytes.attributes();
        let variables = bytes.list(11, |bytes| {
            let name = bytes.name();
            let rank = bytes.number();
            Variable {
                name,
                dimensions: (0..rank)
                    .map(|_| usize::try_from(bytes.number()).unwrap())
                    .collect(),
                attributes: bytes.attributes(),
                kind: bytes.u32(),
                vsize: bytes.number(),
                begin: bytes.u64(),
            }
        });
        File {
            version: all[3],
            n_records,
            dimensions,
            attributes,
            variables,
            header_len: bytes.at,
        }
    }

    pub(super) fn variable(&self, name: &str) -> &Variable {
        self.variables.iter().find(|v| v.name == name).unwrap()
    }

    /// Lengths of the variable, also along the record dimension.
    pub(super) fn shape(&self, variable: &Variable) -> Vec<u64> {
        let lengths = variable
            .dimensions
            .iter()
            .map(|&index| match self.dimensions[index].1 {
                0 => self.n_records,
                length => length,
            });
        lengths.collect()
    }

    pub(super) fn is_record(&self, variable: &Variable) -> bool {
        let first = variable.dimensions.first();
        first.is_some_and(|&index| self.dimensions[index].1 == 0)
    }

    /// Bytes of the variable, or of one record of it.
    fn slab(&self, variable: &Variable) -> u64 {
        let shape = self.shape(variable);
        let inner = &shape[usize::from(self.is_record(variable))..];
        inner.iter().product::<u64>() * size(variable.kind) as u64
    }

    fn record_len(&self) -> u64 {
        let records = self.variables.iter().filter(|v| self.is_record(v));
        let slabs: Vec<u64> = records.map(|variable| self.slab(variable)).collect();
        match slabs.as_slice() {
            [one] => *one,
            many => many.iter().map(|slab| slab.next_multiple_of(4)).sum(),
        }
    }

    /// Where the slabs of the variable lie: begin and length of each.
    pub(super) fn slabs(&self, variable: &Variable) -> Vec<(u64, u64)> {
        let slab = self.slab(variable);
        assert_eq!(variable.vsize, slab.next_multiple_of(4));
        if !self.is_record(variable) {
            return vec![(variable.begin, slab)];
        }
        let stride = self.record_len();
        (0..self.n_records)
            .map(|k| (variable.begin + k * stride, slab))
            .collect()
    }

    /// The values of the variable, big-endian.
    pub(super) fn values(&self, all: &[u8], variable: &Variable) -> Vec<u8> {
        let slabs = self.slabs(variable).into_iter();
        slabs
            .flat_map(|(begin, len)| {
                let begin = usize::try_from(begin).unwrap();
                all[begin..begin + usize::try_from(len).unwrap()].to_vec()
            })
            .collect()
    }
}
