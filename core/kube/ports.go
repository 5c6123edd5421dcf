package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// portMap gives host ports numbers of our own. A port here is a number alone; in
// Kubernetes TCP and UDP are apart. The first protocol that takes a number keeps
// it, others get one from the top of the range.
type portMap struct {
	numbers map[string]uint16 // by port and protocol
	taken   map[uint16]bool
	next    int
}

// reserve takes every port number of TCP that pods use, so that the numbers that
// are given to other protocols are free.
func (b *portMap) reserve(pods []*Pod) {
	b.numbers, b.taken = map[string]uint16{}, map[uint16]bool{}
	for _, protocol := range []string{"TCP", "UDP", "SCTP"} {
		for _, p := range pods {
			p.eachPort(func(port *Port, number int32) {
				if cmp.Or(port.Protocol, "TCP") == protocol && !b.taken[uint16(number)] {
					b.numbers[portKey(number, protocol)], b.taken[uint16(number)] = uint16(number), true
				}
			})
		}
	}
}

func portKey(number int32, protocol string) string { return fmt.Sprintf("%d/%s", number, protocol) }

// number is the number of a port; changed when it is not its own.
func (b *portMap) number(number int32, protocol string) (n uint16, changed bool) {
	key := portKey(number, protocol)
	if n, ok := b.numbers[key]; ok {
		return n, n != uint16(number)
	}
	if b.numbers == nil {
		b.numbers, b.taken = map[string]uint16{}, map[uint16]bool{}
	}
	n = uint16(number)
	for b.taken[n] && b.next < 65535 {
		n = uint16(65535 - b.next)
		b.next++
	}
	b.numbers[key], b.taken[n] = n, true
	return n, n != uint16(number)
}

// eachPort visits the ports of the node that a pod takes.
func (p *Pod) eachPort(visit func(port *Port, number int32)) {
	for i := range p.Spec.Containers {
		p.portsOf(&p.Spec.Containers[i], visit)
	}
	for i := range p.Spec.InitContainers {
		if c := &p.Spec.InitContainers[i]; c.RestartPolicy == "Always" {
			p.portsOf(c, visit)
		}
	}
}

func (p *Pod) portsOf(c *Container, visit func(*Port, int32)) {
	for i := range c.Ports {
		port := &c.Ports[i]
		number := port.HostPort
		if number == 0 && p.Spec.HostNetwork {
			number = port.ContainerPort
		}
		if number > 0 && number < 1<<16 {
			visit(port, number)
		}
	}
}

// hostPorts are the ports of the node that a pod takes, ascending.
func (t *Translator) hostPorts(p *Pod) []uint16 {
	var list []uint16
	p.eachPort(func(port *Port, number int32) {
		if port.HostIP != "" && !strings.HasPrefix(port.HostIP, "0.0.0.0") && port.HostIP != "::" {
			t.Report.info("host ports of one address of the node", "told as the port of every address")
		}
		n, changed := t.ports.number(number, cmp.Or(port.Protocol, "TCP"))
		if changed {
			t.Report.info("host ports of UDP or SCTP whose number TCP uses too", "told by another number, from 65535 down")
		}
		list = append(list, n)
	})
	slices.Sort(list)
	return slices.Compact(list)
}
