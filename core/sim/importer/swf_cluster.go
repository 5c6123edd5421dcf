package importer

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/sim/scenario"
)

const (
	maxNodes = 1 << 20 // of a log: beyond that it is a slip
	maxCores = 1 << 20 // of one node or job
)

// swfCluster is what jobs need to know about the nodes.
type swfCluster struct {
	cores  int             // of the largest node
	memory bool            // whether the nodes' memory is known
	names  map[string]bool // of the clusters
	all    map[string]bool // nodes of the log
	hosts  map[string]bool // nodes that were kept
}

// readMachines makes the nodes: from the .machines file beside the log, else
// from what the log's header says.
func (s *swf) readMachines(src Source, file string, log *swfLog) error {
	s.cluster = swfCluster{names: make(map[string]bool), all: make(map[string]bool), hosts: make(map[string]bool)}
	name := src.find(strings.TrimSuffix(strings.TrimSuffix(file, ".gz"), ".swf") + ".swf.machines")
	var err error
	if name != "" {
		err = s.machinesFile(src, name)
	} else {
		err = s.machinesHeader(file, log)
	}
	if err != nil {
		return err
	}
	for i := range s.file.Nodes {
		n := &s.file.Nodes[i]
		s.cluster.all[n.ID] = true
		s.cluster.cores = max(s.cluster.cores, int(n.Capacity["cpu"]/1000))
	}
	if err := s.shrink(); err != nil {
		return err
	}
	for i := range s.file.Nodes {
		s.cluster.hosts[s.file.Nodes[i].ID] = true
	}
	return nil
}

// machinesFile reads lines of cluster id, name, nodes, cores per node, speed,
// and RAM per node in KiB. Node 3 of cluster c is called c3, as the log's own
// host names are.
func (s *swf) machinesFile(src Source, name string) error {
	s.report.Files = append(s.report.Files, name)
	l, err := src.lines(name)
	if err != nil {
		return err
	}
	defer l.Close()
	s.cluster.memory = true
	for l.next() {
		f := strings.Fields(l.text)
		if len(f) == 0 || strings.HasPrefix(f[0], ";") || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) < 6 {
			l.fail("%d columns; want cluster id, name, nodes, cores per node, speed and RAM per node in KiB", len(f))
			break
		}
		nodes, cores, ram := l.number(f, 2, maxNodes), l.number(f, 3, maxCores), l.number(f, 5, model.MaxAmount)
		if nodes == 0 || cores == 0 {
			l.fail("a cluster of %d nodes with %d cores each", nodes, cores)
		}
		if l.err != nil {
			break
		}
		if len(s.file.Nodes)+int(nodes) > maxNodes {
			l.fail("more than %d nodes in all", maxNodes)
			break
		}
		s.addCluster(l, s.name(f[1]), int(nodes), int(cores), ram/1024)
	}
	return l.err
}

func (s *swf) addCluster(l *lines, name string, nodes, cores int, memory int64) {
	s.cluster.names[name] = true
	for i := range nodes {
		n := swfNode(name, i, cores)
		n.Capacity["memory"] = memory
		if !s.node(n) {
			l.fail("there is a node %s already", n.ID)
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

// machinesHeader makes equal nodes of the header's MaxNodes and MaxProcs.
func (s *swf) machinesHeader(file string, log *swfLog) error {
	nodes, procs := log.header["MaxNodes"], log.header["MaxProcs"]
	if nodes == 0 || procs < nodes || nodes > maxNodes || procs/nodes > maxCores {
		return &FileError{File: file, Err: fmt.Errorf(
			"nothing says what the cluster is: put a .swf.machines file beside it, or MaxNodes and MaxProcs in its header (there: %d and %d)",
			nodes, procs)}
	}
	s.report.note(int(nodes), "nodes made of MaxNodes and MaxProcs, for want of a .machines file", "equal, and without memory")
	s.report.note(int(procs%nodes), "processors that do not divide over equal nodes", "left out")
	for i := range int(nodes) {
		s.node(swfNode("node", i, int(procs/nodes)))
	}
	return nil
}
