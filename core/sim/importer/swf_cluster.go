package importer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/importer/build"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

const (
	maxNodes = 1 << 20 // per log: more is an input error
	maxCores = 1 << 20 // per node or job
)

// swfCluster holds the properties of the nodes that jobs depend on.
type swfCluster struct {
	cores  int             // cores of the largest node
	memory bool            // the memory of the nodes is known
	names  map[string]bool // names of the clusters
	all    map[string]bool // all nodes of the log
	hosts  map[string]bool // retained nodes
}

// readMachines adds the nodes of the .machines file next to the log, or those of the
// log's header if there is no such file.
func (s *swf) readMachines(src Source, file string, log *swfLog) error {
	s.cluster = swfCluster{names: make(map[string]bool), all: make(map[string]bool), hosts: make(map[string]bool)}
	name := src.Find(strings.TrimSuffix(strings.TrimSuffix(file, ".gz"), ".swf") + ".swf.machines")
	var err error
	if name != "" {
		err = s.machinesFile(src, name)
	} else {
		err = s.machinesHeader(file, log)
	}
	if err != nil {
		return err
	}
	for i := range s.File.Nodes {
		n := &s.File.Nodes[i]
		s.cluster.all[n.ID] = true
		s.cluster.cores = max(s.cluster.cores, int(n.Capacity["cpu"]/1000))
	}
	if err := s.Shrink(); err != nil {
		return err
	}
	for i := range s.File.Nodes {
		s.cluster.hosts[s.File.Nodes[i].ID] = true
	}
	return nil
}

// machinesFile reads lines of cluster id, name, nodes, cores per node, speed, and RAM per
// node in KiB. Node 3 of cluster c is named c3, as in the host names of the log.
func (s *swf) machinesFile(src Source, name string) error {
	l, err := s.OpenLines(src, name)
	if err != nil {
		return err
	}
	defer l.Close()
	s.cluster.memory = true
	for l.Next() {
		f := strings.Fields(l.Text)
		if len(f) == 0 || strings.HasPrefix(f[0], ";") || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) < 6 {
			l.Fail("%d columns; expected cluster id, name, nodes, cores per node, speed and RAM per node in KiB", len(f))
			break
		}
		nodes, cores, ram := l.Number(f, 2, maxNodes), l.Number(f, 3, maxCores), l.Number(f, 5, model.MaxAmount)
		if nodes == 0 || cores == 0 {
			l.Fail("invalid cluster of %d nodes with %d cores each", nodes, cores)
		}
		if l.Err() != nil {
			break
		}
		if len(s.File.Nodes)+int(nodes) > maxNodes {
			l.Fail("more than %d nodes in all", maxNodes)
			break
		}
		s.addCluster(l, s.Name(f[1]), int(nodes), int(cores), ram/1024)
	}
	return l.Err()
}

func (s *swf) addCluster(l *build.Lines, name string, nodes, cores int, memory int64) {
	s.cluster.names[name] = true
	for i := range nodes {
		n := swfNode(name, i, cores)
		n.Capacity["memory"] = memory
		if !s.Node(n) {
			l.Fail("duplicate node %s", n.ID)
			return
		}
	}
}

func swfNode(cluster string, i, cores int) scenario.Node {
	return scenario.Node{
		ID:         cluster + strconv.Itoa(i+1),
		Capacity:   scenario.Quantities{"cpu": int64(cores) * 1000},
		Attributes: map[string]string{"cluster": cluster, "cores": strconv.Itoa(cores)},
	}
}

// machinesHeader adds equal nodes according to MaxNodes and MaxProcs in the header.
func (s *swf) machinesHeader(file string, log *swfLog) error {
	nodes, procs := log.header["MaxNodes"], log.header["MaxProcs"]
	if nodes == 0 || procs < nodes || nodes > maxNodes || procs/nodes > maxCores {
		return &FileError{File: file, Err: fmt.Errorf(
			"the nodes of the cluster are unknown: add a .swf.machines file next to the log, or MaxNodes and MaxProcs to its header (found: %d and %d)",
			nodes, procs)}
	}
	s.Report.Note(int(nodes), "nodes derived from MaxNodes and MaxProcs, as the .machines file is missing", "equal, and without memory")
	s.Report.Note(int(procs%nodes), "processors that cannot be divided over equal nodes", "left out")
	for i := range int(nodes) {
		s.Node(swfNode("node", i, int(procs/nodes)))
	}
	return nil
}
