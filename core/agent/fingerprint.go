package agent

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// The resources that are detected.
const (
	resourceCPU    = "cpu"    // millicores
	resourceMemory = "memory" // MiB
	resourceDisk   = "disk"   // MiB
)

// Fingerprint fills in the values that the configuration omits: name, processors,
// memory, disk and kernel of the machine. dir is on the disk that allocations use.
func Fingerprint(n Node, dir string) (Node, error) {
	if n.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			return n, fmt.Errorf("cannot detect the machine's name: %w; set client.name", err)
		}
		n.Name = name
	}
	found := machine(dir)
	capacity := maps.Clone(found.Capacity)
	maps.Copy(capacity, n.Capacity)
	attributes := maps.Clone(found.Attributes)
	maps.Copy(attributes, n.Attributes)
	n.Capacity, n.Attributes = capacity, attributes
	n.Datacenter = cmp.Or(n.Datacenter, "dc1")
	return n, nil
}

// machine holds the detected values.
func machine(dir string) Node {
	n := Node{Capacity: map[string]int64{}, Attributes: map[string]string{
		"arch": runtime.GOARCH, "cpu.arch": runtime.GOARCH, "kernel.name": runtime.GOOS, "os.name": runtime.GOOS,
	}}
	cores := int64(runtime.NumCPU())
	n.Capacity[resourceCPU] = cores * 1000
	n.Attributes["cpu.numcores"] = strconv.FormatInt(cores, 10)
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if mhz := clockRate(info); mhz > 0 {
			n.Attributes["cpu.frequency"] = strconv.FormatInt(mhz, 10)
		}
	}
	if m, err := ReadMemory(); err == nil {
		n.Capacity[resourceMemory] = m.Total >> 20
		n.Attributes["memory.totalbytes"] = strconv.FormatInt(m.Total, 10)
	}
	if free, err := freeDisk(dir); err == nil {
		n.Capacity[resourceDisk] = free >> 20
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		n.Attributes["kernel.version"] = strings.TrimSpace(string(release))
	}
	if name, err := os.Hostname(); err == nil {
		n.Attributes["unique.hostname"] = name
	}
	return n
}

// clockRate returns the rate of the first processor in MHz, or 0 if it is unknown.
func clockRate(cpuinfo []byte) int64 {
	for line := range bytes.Lines(cpuinfo) {
		key, value, ok := strings.Cut(string(line), ":")
		if ok && strings.TrimSpace(key) == "cpu MHz" {
			if mhz, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return int64(mhz)
			}
		}
	}
	return 0
}

// ReadMemory returns the memory available to this process: that of the machine, or of
// its control group if that has a limit.
func ReadMemory() (Memory, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return Memory{}, err
	}
	defer func() { _ = f.Close() }() // opened for reading
	var m Memory
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text())
		if len(fields) < 2 {
			continue
		}
		kib, _ := strconv.ParseInt(fields[1], 10, 64)
		switch fields[0] {
		case "MemTotal:":
			m.Total = kib << 10
		case "MemAvailable:":
			m.Available = kib << 10
		}
	}
	if m.Total == 0 {
		return m, fmt.Errorf("/proc/meminfo has no MemTotal or MemAvailable")
	}
	m.bound("/sys/fs/cgroup")
	if psi, err := os.ReadFile("/proc/pressure/memory"); err == nil {
		m.Stall = stall(psi)
	}
	return m, nil
}

// bound applies a control group's limit.
func (m *Memory) bound(cgroup string) {
	number := func(name string) (int64, bool) {
		b, err := os.ReadFile(filepath.Join(cgroup, name))
		if err != nil {
			return 0, false
		}
		v, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
		return v, err == nil // "max" is not a number
	}
	limit, ok := number("memory.max")
	if !ok || limit >= m.Total {
		return
	}
	used, _ := number("memory.current")
	m.Total = limit
	m.Available = min(m.Available, max(limit-used, 0))
}

// stall returns the value "full avg10" of the kernel's pressure file.
func stall(psi []byte) float64 {
	for line := range bytes.Lines(psi) {
		fields := strings.Fields(string(line))
		if len(fields) == 0 || fields[0] != "full" {
			continue
		}
		i := slices.IndexFunc(fields, func(f string) bool { return strings.HasPrefix(f, "avg10=") })
		if i >= 0 {
			v, _ := strconv.ParseFloat(strings.TrimPrefix(fields[i], "avg10="), 64)
			return v
		}
	}
	return 0
}
