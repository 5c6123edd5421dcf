package jobtrace

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
)

// maxArray bounds the pending elements of one job array.
const maxArray = 1 << 20

// slurmID returns the ID of a job in a scenario and the number of jobs that a row stands
// for. Rows of pending arrays list several elements, such as 12_[3,5-9%2].
func slurmID(text string) (id string, count int, step bool, err error) {
	if text == "" {
		return "", 0, false, errors.New("a job ID is required")
	}
	job, elements, isArray := strings.Cut(text, "_[")
	if !isArray {
		if strings.Contains(text, ".") {
			return "", 0, true, nil
		}
		return "j" + build.CleanName(strings.ReplaceAll(text, "+", "-het")), 1, false, nil
	}
	elements, closed := strings.CutSuffix(elements, "]")
	elements, _, _ = strings.Cut(elements, "%")
	if !closed {
		// sacct shortens long lists with an ellipsis.
		return "", 0, false, errors.New("the list of array elements is not complete; run sacct with SLURM_BITSTR_LEN=0")
	}
	for part := range strings.SplitSeq(elements, ",") {
		part, stride, _ := strings.Cut(part, ":")
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		a, err1 := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		step := 1
		if stride != "" {
			step, _ = strconv.Atoi(stride)
		}
		if err1 != nil || err2 != nil || a < 0 || b < a || b-a > maxArray || step < 1 {
			return "", 0, false, fmt.Errorf("invalid array elements %.60q", part)
		}
		if count += (b-a)/step + 1; count > maxArray {
			return "", 0, false, fmt.Errorf("more than %d array elements", maxArray)
		}
	}
	return "j" + build.CleanName(job) + "-pending", count, false, nil
}

// slurmTRES are trackable resources, in total.
type slurmTRES struct {
	cpus, nodes, gpus int
	memory            int64 // MiB
	gpuModel          string
}

// parseTRES parses trackable resources, such as cpu=8,gres/gpu:a100=2,mem=64G,node=1. It
// ignores other resources, such as billing.
func parseTRES(text string) (r slurmTRES, err error) {
	number := func(key, value string, most int) int {
		n, bad := strconv.Atoi(value)
		if bad != nil || n < 0 || n > most {
			err = fmt.Errorf("%s=%.40s; expected an integer, 0 to %d", key, value, most)
			return 0
		}
		return n
	}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(part, "=")
		name, kind, typed := strings.Cut(key, ":")
		switch {
		case key == "cpu":
			r.cpus = number(key, value, maxCPU)
		case key == "node":
			r.nodes = number(key, value, maxNodes)
		case key == "mem":
			mem, bad := parseMemory(value)
			if bad != nil {
				err = fmt.Errorf("mem=%.40s; expected memory such as 64G", value)
			}
			r.memory = mem
		case name == "gres/gpu" && typed:
			r.gpuModel, r.gpus = kind, max(r.gpus, number(key, value, maxGPUs))
		case name == "gres/gpu":
			r.gpus = max(r.gpus, number(key, value, maxGPUs))
		}
	}
	return r, err
}

// parseMemory parses an amount of memory such as 4000M or 1.5G into MiB, rounded up. The
// default unit is MiB.
func parseMemory(text string) (int64, error) {
	scale := 1.0
	if n := len(text); n > 0 {
		switch text[n-1] {
		case 'K', 'k':
			scale, text = 1.0/1024, text[:n-1]
		case 'M', 'm':
			text = text[:n-1]
		case 'G', 'g':
			scale, text = 1<<10, text[:n-1]
		case 'T', 't':
			scale, text = 1<<20, text[:n-1]
		case 'P', 'p':
			scale, text = 1<<30, text[:n-1]
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	// NaN fails the comparison.
	if err != nil || !(f >= 0 && f*scale < maxMiB) {
		return 0, errors.New("invalid memory")
	}
	mib := int64(f * scale)
	if float64(mib) < f*scale {
		mib++
	}
	return mib, nil
}

// parseReqMem returns the memory of each node in MiB. Until Slurm 21.08, a suffix states if
// the amount is per CPU (c) or per node (n); later versions print the total of the job.
func parseReqMem(text string, cpus int64, nodes int) (int64, error) {
	amount, perCPU := strings.CutSuffix(text, "c")
	amount, isPerNode := strings.CutSuffix(amount, "n")
	mib, err := parseMemory(amount)
	switch {
	case err != nil:
		return 0, err
	case perCPU && cpus > 0 && mib > model.MaxAmount/cpus:
		return 0, errors.New("invalid memory")
	case perCPU:
		return perInstance(mib*cpus, nodes), nil
	case isPerNode:
		return mib, nil
	}
	return perInstance(mib, nodes), nil
}

// parseElapsed parses [DD-[HH:]]MM:SS or a number of seconds.
func parseElapsed(text string) (int64, error) {
	invalid := errors.New("invalid elapsed time")
	var days int64
	rest := text
	if d, r, ok := strings.Cut(text, "-"); ok {
		n, err := strconv.ParseUint(d, 10, 20)
		if err != nil {
			return 0, invalid
		}
		days, rest = int64(n), r
	}
	rest, _, _ = strings.Cut(rest, ".")
	var seconds int64
	parts := strings.Split(rest, ":")
	if len(parts) > 3 {
		return 0, invalid
	}
	for _, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return 0, invalid
		}
		seconds = seconds*60 + int64(n)
	}
	return days*86_400 + seconds, nil
}

// expandHosts calls visit with each name of a list such as n[01-03,7],gpu1. It returns an
// error if the list is invalid or has more than maxNodes names.
func expandHosts(list string, visit func(string)) error {
	count := 0
	for list != "" {
		end, depth := 0, 0
		for end < len(list) && (list[end] != ',' || depth > 0) {
			switch list[end] {
			case '[':
				depth++
			case ']':
				depth--
			}
			end++
		}
		word := list[:end]
		list = strings.TrimPrefix(list[end:], ",")
		open := strings.IndexByte(word, '[')
		shut := strings.LastIndexByte(word, ']')
		if open < 0 && shut < 0 {
			if count++; count > maxNodes {
				return fmt.Errorf("more than %d nodes", maxNodes)
			}
			visit(word)
			continue
		}
		if open < 0 || shut < open || strings.ContainsAny(word[open+1:shut], "[]") {
			return fmt.Errorf("invalid node list %.60q", word)
		}
		for part := range strings.SplitSeq(word[open+1:shut], ",") {
			from, to, ranged := strings.Cut(part, "-")
			if !ranged {
				to = from
			}
			a, err1 := strconv.ParseUint(from, 10, 31)
			b, err2 := strconv.ParseUint(to, 10, 31)
			if err1 != nil || err2 != nil || b < a || b-a >= uint64(maxNodes-count) {
				return fmt.Errorf("invalid node list %.60q", word)
			}
			for n := a; n <= b; n++ {
				count++
				visit(fmt.Sprintf("%s%0*d%s", word[:open], len(from), n, word[shut+1:]))
			}
		}
	}
	return nil
}
