package process

import "golang.org/x/sys/unix"

// auditArch identifies the calls of this architecture. firstForeignCall is the first
// number of the x32 calls, which have their own numbers.
const (
	auditArch        = unix.AUDIT_ARCH_X86_64
	firstForeignCall = 1 << 30
)

// archDeniedCalls are calls that other architectures lack.
var archDeniedCalls = []uint32{
	unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT,
	unix.SYS_KEXEC_FILE_LOAD, unix.SYS_IOPL, unix.SYS_IOPERM,
}
