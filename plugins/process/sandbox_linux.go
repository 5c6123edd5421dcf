//go:build amd64 || arm64

package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemPaths are readable and executable by every process: programs, libraries, their
// cache, and time zones. They hold no secrets. Of /usr they exclude folders that an
// operator may use for configuration or data, such as /usr/local/etc. Those that are
// missing, or that the user of the server cannot reach, are skipped.
var systemPaths = []string{
	"/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec", "/usr/share",
	"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/lib64", "/usr/local/libexec", "/usr/local/share",
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
}

// devicePaths are readable and writable by every process.
var devicePaths = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

const (
	readAndExecute = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	readAndWrite   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	ownFiles       = readAndWrite | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	// fileRights are the rights that apply to files; the kernel refuses others in a rule
	// for a file.
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// sandboxState returns what isolates processes on this host, or an error with the reason
// why nothing does.
func sandboxState() (string, error) {
	abi, err := landlockVersion()
	if err != nil {
		return "", fmt.Errorf("the kernel does not support Landlock: %w", err)
	}
	return fmt.Sprintf("Landlock (ABI %d) and seccomp", abi), nil
}

// landlockVersion returns the version of Landlock in the kernel.
func landlockVersion() (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, errno
	}
	return int(version), nil
}

// enterSandbox restricts this thread, and with it every process that it starts: to
// execute file, to write below dir, and to read the libraries of the system; without
// network, other processes of the host, and privileges. It cannot be undone, so the
// caller must end the thread. The process may create its process group with key, and
// neither it nor its children may leave that group, so that they end with it.
func enterSandbox(file, dir string, key uint32) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := restrictFiles(file, dir); err != nil {
		return err
	}
	return restrictCalls(key)
}

// dropCapabilities makes programs that root starts on this thread run without
// capabilities.
func dropCapabilities() error {
	if os.Geteuid() != 0 {
		return nil // exec grants capabilities to root only, because of no_new_privs
	}
	const noRoot, noRootLocked = 1 << 0, 1 << 1
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|noRootLocked, 0, 0, 0); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("set securebits: %w", err) // EPERM: root has no capabilities here
	}
	return nil
}

// restrictFiles applies Landlock to this thread. Rights and scopes that an older kernel
// does not support are omitted.
func restrictFiles(file, dir string) error {
	abi, err := landlockVersion()
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	handled := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1) // all rights of the first version
	var attr unix.LandlockRulesetAttr
	if abi >= 2 {
		handled |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		handled |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 5 {
		handled |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	attr.Handled_access_fs = handled
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("landlock: create ruleset: %w", errno)
	}
	defer func() { _ = unix.Close(int(fd)) }()
	rights := map[string]uint64{file: readAndExecute, dir: ownFiles}
	for _, path := range systemPaths {
		rights[path] = readAndExecute
	}
	for _, path := range devicePaths {
		rights[path] = readAndWrite
	}
	for path, allowed := range rights {
		required := path == file || path == dir
		if err := allowPath(int(fd), path, allowed&handled); err != nil && (required || !isUnreachable(err)) {
			return fmt.Errorf("landlock: %s: %w", path, err)
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("landlock: restrict: %w", errno)
	}
	return nil
}

// isUnreachable reports whether an error means that a path does not exist, or that this user
// cannot reach it: a process of the user cannot use it either, with or without a rule.
func isUnreachable(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EACCES)
}

// allowPath adds a rule for a file, or for a directory and everything below it.
func allowPath(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// deniedCalls are the system calls that Landlock does not cover and that affect files,
// other processes, or the host.
var deniedCalls = []uint32{
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR, unix.SYS_CONNECT,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_PRLIMIT64 | onlyOthers, unix.SYS_SCHED_SETAFFINITY | onlyOthers, unix.SYS_SCHED_SETSCHEDULER | onlyOthers,
	unix.SYS_SCHED_SETPARAM | onlyOthers, unix.SYS_SCHED_SETATTR | onlyOthers, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_CHROOT, unix.SYS_PIVOT_ROOT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_SETSID,
}

// onlyOthers marks a call with a process as its first argument. It is allowed for the
// calling process, which is 0.
const onlyOthers = 1 << 31

// socketTypes masks the type of a socket, without its flags.
const socketTypes = 0xf

// The offsets of struct seccomp_data.
const (
	offsetCall     = 0
	offsetArch     = 4
	offsetArgument = 16 // low half of the first one, on little-endian machines
	offsetType     = 24 // low half of the second one
	offsetGroupKey = 28 // high half of the second one
)

// restrictCalls applies seccomp to this thread: the calls of deniedCalls fail with EPERM,
// and so does the creation of sockets of any kind but unix, and of unix sockets for
// datagrams. Landlock does not restrict the use of sockets that have a path. A process that
// may neither connect nor send datagrams cannot use those of other programs of the host, and
// can still accept the connection of its host.
func restrictCalls(key uint32) error {
	filter := callFilter(key)
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	return nil
}

// callFilter returns the program that the kernel runs for each system call. The process
// inherits the filter before it creates its process group. A call without key ends its
// process, which could try all keys otherwise.
func callFilter(key uint32) []unix.SockFilter {
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equal := func(k uint32, ifTrue, ifFalse uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: ifTrue, Jf: ifFalse}
	}
	result := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	deny := result(unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM))
	list := []unix.SockFilter{
		load(offsetArch), equal(auditArch, 1, 0), deny, // calls of another architecture have other numbers
		load(offsetCall),
		{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: firstForeignCall, Jt: 0, Jf: 1},
		deny,
	}
	for _, call := range slices.Concat(deniedCalls, archDeniedCalls) {
		if call&onlyOthers == 0 {
			list = append(list, equal(call, 0, 1), deny)
			continue
		}
		list = append(list, equal(call&^onlyOthers, 0, 4), load(offsetArgument), equal(0, 0, 1), result(unix.SECCOMP_RET_ALLOW), deny)
	}
	allow := result(unix.SECCOMP_RET_ALLOW)
	return append(list,
		equal(unix.SYS_SETPGID, 0, 4), load(offsetGroupKey), equal(key, 0, 1), allow, result(unix.SECCOMP_RET_KILL_PROCESS),
		equal(unix.SYS_SOCKETPAIR, 1, 0), equal(unix.SYS_SOCKET, 0, 8),
		load(offsetArgument), equal(unix.AF_UNIX, 1, 0), deny,
		load(offsetType), unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: socketTypes},
		equal(unix.SOCK_STREAM, 2, 0), equal(unix.SOCK_SEQPACKET, 1, 0), deny,
		allow)
}
