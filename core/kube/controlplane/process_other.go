//go:build !linux

package controlplane

import "syscall"

func childAttributes() *syscall.SysProcAttr { return nil }
