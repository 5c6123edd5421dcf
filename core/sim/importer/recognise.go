package importer

import (
	"path"
	"regexp"

	"github.com/cede-scheduler/cede/core/sim/importer/build"
)

// signs distinguish the files of a format from those of others, by their names and by the
// beginning of their text. The first match wins: a recording of KWOK contains objects of
// Kubernetes, as a dump does.
var signs = []struct {
	format string
	names  []string // patterns
	form   *regexp.Regexp
}{
	{"gfs", []string{"node_info_df.csv", "job_info_df.csv"}, regexp.MustCompile(`^(node_name,gpu_model|job_name,organization),`)},
	{"google", []string{"machine_events-part-*", "task_events-part-*"}, regexp.MustCompile(`^job_id,task_index,`)},
	{"helios", []string{"cluster_gpu_number.csv", "cluster_log.csv"}, regexp.MustCompile(`^job_id,user,vc,gpu_num,`)},
	{"philly", []string{"cluster_machine_list", "cluster_job_log"}, regexp.MustCompile(`^machineId,|"jobid"\s*:`)},
	{"openb", []string{"openb_*.csv"}, regexp.MustCompile(`^(sn|name),cpu_milli,`)},
	{"slurm", nil, regexp.MustCompile(`^([A-Za-z]+\|)*(JobID|JobIDRaw)(\||\n|\r)`)},
	{"kwok", nil, regexp.MustCompile(`action\.kwok\.x-k8s\.io/`)},
	{"simkube", nil, regexp.MustCompile(`trackedObjects`)},
	{"kube", nil, regexp.MustCompile(`(?m)^\s*"kind"\s*:\s*"List"|^kind: List`)},
	{"nomad", nil, regexp.MustCompile(`"(SchedulingEligibility|DesiredStatus)"\s*:`)},
	{"swf", nil, regexp.MustCompile(`(?m)^;|^\s*(-?\d+\s+){17}-?\d+\s*$`)},
}

// maxForm is the number of bytes of a file in which forms are looked for.
const maxForm = 64 << 10

// Recognise returns the format of a trace by its files, for messages; "" if it is unknown. If
// several formats are possible it prefers the given one.
func Recognise(src Source, prefer string) string {
	names := []string{src.File}
	if src.File == "" {
		names = src.Match("*")
	}
	texts := map[string][]byte{}
	found := ""
	for i := range signs {
		for _, name := range names {
			if texts[name] == nil {
				texts[name] = head(src, name)
			}
			if (signs[i].form.Match(texts[name]) || matches(name, signs[i].names)) && (found == "" || signs[i].format == prefer) {
				found = signs[i].format
			}
		}
	}
	return found
}

// matches reports whether a file has one of the names, plain or with .gz.
func matches(name string, patterns []string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, build.Stem(name, "")); ok { // the patterns are valid
			return true
		}
	}
	return false
}

// head returns the beginning of a file; empty if it cannot be read.
func head(src Source, name string) []byte {
	r, err := src.Open(name)
	if err != nil {
		return []byte{}
	}
	defer func() { _ = r.Close() }() // read-only
	text, _ := r.Peek(maxForm)
	return append([]byte{}, text...)
}
