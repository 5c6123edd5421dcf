package controlplane

import "syscall"

// childAttributes has the kernel kill the program when the test ends in any way.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
