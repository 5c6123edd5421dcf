package cmdutil

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// availableMemory returns the memory that the process can plan with, in bytes: the minimum
// of the free memory of the machine, that of its control group, and GOMEMLIMIT. It returns
// 0 if unknown.
func availableMemory() int64 {
	least := int64(math.MaxInt64)
	for _, bytes := range []int64{machineMemory(), groupMemory(), debug.SetMemoryLimit(-1)} {
		if bytes > 0 {
			least = min(least, bytes)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

// machineMemory reads MemAvailable, on Linux.
func machineMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemAvailable:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// groupMemory returns the free memory of the control group of a container, on Linux; 0 if
// there is no limit.
func groupMemory() int64 {
	limit, used := number("/sys/fs/cgroup/memory.max"), number("/sys/fs/cgroup/memory.current")
	if limit == 0 {
		return 0
	}
	return max(limit-used, 1)
}

func number(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // "max" means no limit
	return n
}
