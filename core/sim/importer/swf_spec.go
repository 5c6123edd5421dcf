package importer

import (
	"strconv"
	"strings"
)

// chunk is a number of equal nodes that a job requests.
type chunk struct {
	nodes, cores int
	properties   []string // required of the nodes, in the notation of the log; ^ negates
}

// parseSpec parses a node specification of the PBS kind, such as
//
//	2:ppn=4:x86_64:cl_zewura+1:ppn=8#excl
//
// It returns false if the specification is invalid.
func parseSpec(text string) (chunks []chunk, exclusive, ok bool) {
	text, flags, _ := strings.Cut(text, "#")
	for part := range strings.SplitSeq(text, "+") {
		c := chunk{nodes: 1, cores: 1}
		for i, word := range strings.Split(part, ":") {
			key, value, valued := strings.Cut(word, "=")
			n, err := strconv.Atoi(word)
			switch {
			case i == 0 && err == nil:
				c.nodes = n
			case key == "ppn" && valued:
				if c.cores, err = strconv.Atoi(value); err != nil {
					return nil, false, false
				}
			case key == "mem" && valued:
				// The memory column of the log has the same information.
			case word == "":
				return nil, false, false
			default:
				c.properties = append(c.properties, word)
			}
		}
		if c.nodes < 1 || c.nodes > maxNodes || c.cores < 1 || c.cores > maxCores {
			return nil, false, false
		}
		chunks = append(chunks, c)
	}
	return chunks, strings.Contains(flags, "excl"), true
}
