package process

import "golang.org/x/sys/unix"

// auditArch identifies the calls of this architecture. firstForeignCall is above all
// calls: there are no others.
const (
	auditArch        = unix.AUDIT_ARCH_AARCH64
	firstForeignCall = 1 << 30
)

// archDeniedCalls are calls that other architectures lack.
var archDeniedCalls = []uint32{unix.SYS_KEXEC_FILE_LOAD}
