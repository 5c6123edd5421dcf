package lossy

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A Disk is a mounted file system. Synced data is in Dir. A write reaches Dir only by
// Fsync, so a killed process alone loses nothing as long as the mount exists.
type Disk struct {
	Dir, At string // At is the mount point

	now    *lossyFS // since power was last turned on
	server *fuse.Server
}

// Mount mounts an empty disk at a directory for the duration of the test, or at a new
// directory if at is empty. It skips the test if mounting is not permitted.
func Mount(t testing.TB, at string) *Disk {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skip("requires /dev/fuse, to mount a file system that loses unsynced data")
	}
	if at == "" {
		at = t.TempDir()
	} else if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	d := &Disk{Dir: t.TempDir(), At: at}
	if err := d.mount(); err != nil {
		t.Skipf("requires mounting a FUSE file system, which is not permitted here: %v; run the tests as root", err)
	}
	t.Cleanup(d.unmount)
	return d
}

// mount mounts Dir with a new, empty set of unsynced pages.
func (d *Disk) mount() error {
	d.now = &lossyFS{dir: d.Dir, files: map[uint64]*lossyPages{}}
	root, err := fs.NewLoopbackRoot(d.Dir)
	if err != nil {
		return err
	}
	top := &lossyNode{root.(*fs.LoopbackNode), d.now}
	d.server, err = fs.Mount(d.At, top, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "cede-lossy", MaxWrite: 1 << 20}})
	return err
}

// unmount detaches the mount point if a process still uses it, so that a failed test
// leaves no mount behind.
func (d *Disk) unmount() {
	if err := d.server.Unmount(); err != nil {
		_ = syscall.Unmount(d.At, syscall.MNT_DETACH)
	}
	d.server.Wait()
}

// PowerOff turns the power off: from now on every sync returns an input/output error and
// stores nothing. The caller then kills the writers.
func (d *Disk) PowerOff() { d.now.failSync.Store(true) }

// PowerOn remounts the disk with the synced data and returns the number of lost pages. The
// caller ensures that no process uses it.
func (d *Disk) PowerOn(t testing.TB) (lost int) {
	t.Helper()
	d.unmount() // pages still in the kernel are discarded
	lost = d.now.dirty()
	if err := d.mount(); err != nil {
		t.Fatal(err)
	}
	return lost
}

// Written returns the number of pages written since the power was last turned on.
func (d *Disk) Written() int64 { return d.now.written.Load() }

// lossyFS is the state of a disk between two power failures.
type lossyFS struct {
	dir      string
	failSync atomic.Bool // every sync returns an input/output error
	written  atomic.Int64

	mu    sync.Mutex
	files map[uint64]*lossyPages // by inode
}

const lossyPage = 4096

// lossyPages holds the unsynced pages of a file.
type lossyPages struct {
	mu    sync.Mutex
	pages map[int64][]byte
}

// dirty returns the number of unsynced pages.
func (l *lossyFS) dirty() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.files {
		p.mu.Lock()
		n += len(p.pages)
		p.mu.Unlock()
	}
	return n
}

// pagesOf returns the unsynced pages of a file. They are found by inode, since several
// open files share them.
func (l *lossyFS) pagesOf(f *os.File) *lossyPages {
	var st syscall.Stat_t
	if err := syscall.Fstat(int(f.Fd()), &st); err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.files[st.Ino]
	if p == nil {
		p = &lossyPages{pages: map[int64][]byte{}}
		l.files[st.Ino] = p
	}
	if st.Size == 0 { // a new file may reuse the inode of another
		p.mu.Lock()
		clear(p.pages)
		p.mu.Unlock()
	}
	return p
}

type lossyNode struct {
	*fs.LoopbackNode
	fs *lossyFS
}

var _ fs.NodeWrapChilder = (*lossyNode)(nil)

func (n *lossyNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	return &lossyNode{child.(*fs.LoopbackNode), n.fs}
}

func (n *lossyNode) path() string { return filepath.Join(n.fs.dir, n.Path(n.Root())) }

func (n *lossyNode) Open(_ context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	mode := os.O_RDWR
	if flags&syscall.O_ACCMODE == syscall.O_RDONLY {
		mode = os.O_RDONLY
	}
	f, err := os.OpenFile(n.path(), mode, 0)
	if err != nil {
		return nil, 0, fs.ToErrno(err)
	}
	return &lossyFile{fs: n.fs, f: f, p: n.fs.pagesOf(f)}, 0, 0
}

func (n *lossyNode) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	inode, h, _, errno := n.LoopbackNode.Create(ctx, name, flags&^syscall.O_ACCMODE|syscall.O_RDWR, mode, out)
	if errno != 0 {
		return nil, nil, 0, errno
	}
	_ = h.(fs.FileReleaser).Release(ctx)
	f, err := os.OpenFile(filepath.Join(n.path(), name), os.O_RDWR, 0)
	if err != nil {
		return nil, nil, 0, fs.ToErrno(err)
	}
	return inode, &lossyFile{fs: n.fs, f: f, p: n.fs.pagesOf(f)}, 0, 0
}

// Setattr discards pages behind the new end of a file before the size changes.
func (n *lossyNode) Setattr(ctx context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		f, err := os.OpenFile(n.path(), os.O_RDWR, 0)
		if err != nil {
			return fs.ToErrno(err)
		}
		n.fs.pagesOf(f).cut(int64(size))
		_ = f.Close()
	}
	return n.LoopbackNode.Setattr(ctx, nil, in, out)
}

// CopyFileRange is refused, so that all writes pass through Write.
func (n *lossyNode) CopyFileRange(context.Context, fs.FileHandle, uint64, *fs.Inode, fs.FileHandle, uint64, uint64, uint64) (uint32, syscall.Errno) {
	return 0, syscall.ENOTSUP
}

// cut discards pages beyond the end of a file.
func (p *lossyPages) cut(size int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, page := range p.pages {
		switch {
		case at >= size:
			delete(p.pages, at)
		case at+lossyPage > size:
			clear(page[size-at:])
		}
	}
}

type lossyFile struct {
	fs *lossyFS
	f  *os.File
	p  *lossyPages
}

var (
	_ fs.FileReader   = (*lossyFile)(nil)
	_ fs.FileWriter   = (*lossyFile)(nil)
	_ fs.FileFsyncer  = (*lossyFile)(nil)
	_ fs.FileFlusher  = (*lossyFile)(nil)
	_ fs.FileReleaser = (*lossyFile)(nil)
)

// Read returns the synced bytes with the unsynced pages over them.
func (h *lossyFile) Read(_ context.Context, b []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	n, _ := h.f.ReadAt(b, off)
	for at := off / lossyPage * lossyPage; at < off+int64(n); at += lossyPage {
		if page := h.p.pages[at]; page != nil {
			from := max(at, off)
			copy(b[from-off:n], page[from-at:])
		}
	}
	return fuse.ReadResultData(b[:n]), 0
}

// Write stores bytes in pages alone. The size is changed at once: file systems may
// write metadata before data, which results in torn files.
func (h *lossyFile) Write(_ context.Context, b []byte, off int64) (uint32, syscall.Errno) {
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	end := off + int64(len(b))
	if info, err := h.f.Stat(); err != nil {
		return 0, fs.ToErrno(err)
	} else if end > info.Size() {
		if err := h.f.Truncate(end); err != nil {
			return 0, fs.ToErrno(err)
		}
	}
	for at := off / lossyPage * lossyPage; at < end; at += lossyPage {
		page := h.p.pages[at]
		if page == nil {
			page = make([]byte, lossyPage)
			_, _ = h.f.ReadAt(page, at)
			h.p.pages[at] = page
		}
		from := max(at, off)
		copy(page[from-at:], b[from-off:])
		h.fs.written.Add(1)
	}
	return uint32(len(b)), 0
}

// Fsync writes the pages of the file to Dir. Pages of other files stay unsynced.
func (h *lossyFile) Fsync(context.Context, uint32) syscall.Errno {
	if h.fs.failSync.Load() {
		return syscall.EIO
	}
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	if h.fs.failSync.Load() { // power failed while this call waited
		return syscall.EIO
	}
	info, err := h.f.Stat()
	if err != nil {
		return fs.ToErrno(err)
	}
	for at, page := range h.p.pages {
		if _, err := h.f.WriteAt(page[:min(lossyPage, max(info.Size()-at, 0))], at); err != nil {
			return fs.ToErrno(err)
		}
	}
	clear(h.p.pages)
	return 0
}

// Flush does nothing: closing a file syncs nothing.
func (h *lossyFile) Flush(context.Context) syscall.Errno { return 0 }

func (h *lossyFile) Release(context.Context) syscall.Errno { return fs.ToErrno(h.f.Close()) }
