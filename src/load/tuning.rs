//! The constants of loading and of readahead. Each was chosen by `scripts/bench`, which compares
//! two builds side by side on local disks. Those that depend on the pattern of reads were chosen by
//! `scripts/benchmark/random_reads.py` and `scripts/benchmark/growth.py`.

/// Bytes of small chunks that one thread loads in one step. With less, waking threads costs more
/// than they save; with more, a read of 1 MiB leaves a core idle.
pub(crate) const STEP_BYTES: u64 = 256 << 10;

/// The most chunks of one step. Under the model checker arrays are small, and must still have several
/// steps.
pub(crate) const STEP_CHUNKS: usize = if cfg!(feature = "model") { 1 } else { 64 };

/// The most encoded bytes of a shard that are read together in a store where requests take long.
pub(crate) const TOGETHER_BYTES: u64 = 8 << 20;

/// [`TOGETHER_BYTES`] are also no more than the cache divided by this, because each thread that reads may hold as many
/// bytes.
pub(crate) const TOGETHER_SHARE: u64 = 16;

/// The most chunks that are read together. One thread decodes them.
pub(crate) const TOGETHER_CHUNKS: usize = 256;

/// The most objects that one thread requests at once. The first of them is decoded when all have come.
pub(crate) const TOGETHER_OBJECTS: usize = 16;

/// The most memory of blocks that are marked "evict first" in a local store. Beyond this, the next block reuses the
/// memory of the last of them: the page cache of the kernel holds the bytes as well, and fresh memory costs more than a
/// copy from there.
pub(crate) const MOST_EVICT_FIRST_BYTES: u64 = 16 << 20;

/// The same limit for a remote store, where fetching a chunk again costs more than fresh memory. So the
/// beginning of a sequential read stays for a second program. Without a limit, such blocks would fill the whole cache,
/// which is of no use as long as the kernel has the bytes, too.
pub(crate) const MOST_EVICT_FIRST_BYTES_FAR: u64 = 64 << 20;

/// Chunks of one read that are requested at once. The requests take no more memory than the bytes
/// of a long read.
pub(crate) const MOST_CHUNKS: usize = 4096;

/// Bytes of a page of a shard index, which has 4096 entries. A shorter index is one block.
pub(crate) const PAGE_BYTES: u64 = 64 << 10;

/// A read of at least this many bytes is a part of a longer one, which the kernel splits and may send in another order.
/// A shorter read may be random, so that the rest of its chunk is never read.
pub(crate) const LONG_READ_BYTES: u64 = 64 << 10;

/// The kernel reads pages. A shorter read is a part of another read, or the end of a file.
pub(crate) const SHORT_READ_BYTES: u64 = 512;

/// The shortest page of stored objects. A page is as long as what could be read in the time of one
/// request, within these limits.
pub(crate) const LEAST_PAGE_BYTES: u64 = 64 << 10;

/// The longest page of stored objects.
pub(crate) const MOST_PAGE_BYTES: u64 = 4 << 20;

/// A page is also no longer than the cache divided by this, unless that is less than the shortest
/// page.
pub(crate) const PAGES_SHARE: u64 = 64;

/// The most bytes that the kernel asks for in one read.
pub(crate) const OUTPUT_BYTES: u64 = 512 << 10;

/// Reads whose pages are evicted by other reads before they are copied hold memory for their bytes while they wait. All
/// together they hold at most the cache divided by this.
pub(crate) const OUTPUTS_SHARE: u64 = 16;

/// Output bytes of the reads that wait for chunks. When there are more, further reads wait for a
/// thread before they take memory.
pub(crate) const MOST_PENDING_BYTES: u64 = 16 << 20;

/// Prefetching begins when a reader has read this many bytes in order. A program that reads an
/// image of 27 KiB page by page reads less.
pub(crate) const OPEN_BYTES: u64 = 64 << 10;

/// Prefetching also needs this many reads in order, because a page fault makes the kernel read
/// around it in two requests that follow each other.
pub(crate) const OPEN_READS: u64 = 3;

/// A first read of this many bytes at the beginning of a file comes from a program that reads all of the file, as `cat`
/// does. A page fault, or a read of a header, is shorter.
pub(crate) const FIRST_READ_BYTES: u64 = 128 << 10;

/// In a store that is slow to answer, a program with such a first read has the readahead window of a program that has
/// read this much. With a smaller window, one more round trip passes before all requests are under way.
pub(crate) const EXPECTED_BYTES: u64 = 16 << 20;

/// The least number of chunks that are prefetched in a store that is slow to answer, unless they are longer than
/// [`FIRST_WINDOW_BYTES`].
pub(crate) const FIRST_WINDOW_CHUNKS: u64 = 4;

/// The most bytes of the first [`FIRST_WINDOW_CHUNKS`].
pub(crate) const FIRST_WINDOW_BYTES: u64 = 16 << 20;

/// The factor by which the readahead window of a local store grows while the reader reads to its
/// end.
pub(crate) const GROWTH_LOCAL: u64 = 2;

/// The factor by which the readahead window grows in a store that is slow to answer.
pub(crate) const GROWTH_FAR: u64 = 4;

/// Prefetching begins when a reader of chunk files has read this many files in order. Two
/// neighbours may be read one after the other by chance.
pub(crate) const OPEN_FILES: u64 = 3;

/// The most sequential readers of the chunk files of one array that are remembered.
pub(crate) const MOST_FILE_READERS: usize = 8;

/// The next file of a reader may be any of this many that follow, because programs open files in
/// parallel.
pub(crate) const FILE_STRIDE: usize = 4;

/// The share of one reader of chunk files in the cache is the cache divided by this.
pub(crate) const FILES_SHARE: u64 = 4;

/// The least distance to the kernel's own readahead, in bytes of the file, so that no thread runs
/// out of small chunks.
pub(crate) const LEAD_BYTES: u64 = 4 << 20;

/// The kernel's readahead sends several long requests. Short reads of a sequence may overtake each
/// other by this many times their length.
pub(crate) const STRAY_REQUESTS: u64 = 4;

/// Long reads of a sequence may overtake each other by this many bytes.
pub(crate) const STRAY_BYTES: u64 = 4 << 20;

/// Chunks that are planned at once. Where chunks are very small, more are planned when these have
/// begun.
pub(crate) const MOST_PLANNED: u64 = 4096;
