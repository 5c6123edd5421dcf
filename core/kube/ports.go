package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A portMap maps host ports to model ports. The model has one port space; Kubernetes
// has one per protocol. The first protocol that uses a number keeps it, and other
// protocols get a free number from the top of the range.
type portMap struct {
	numbers map[string]uint16 // by port and protocol
	used    map[uint16]bool
	next    int
}

// reserve assigns the numbers of all ports that pods use, TCP first, so that the
// numbers for other protocols do not collide with them.
func (b *portMap) reserve(pods []*Pod) {
	b.numbers, b.used = map[string]uint16{}, map[uint16]bool{}
	for _, protocol := range []string{"TCP", "UDP", "SCTP"} {
		for _, p := range pods {
			p.eachPort(func(port *Port, number int32) {
				if cmp.Or(port.Protocol, "TCP") == protocol && !b.used[uint16(number)] {
					b.numbers[portKey(number, protocol)], b.used[uint16(number)] = uint16(number), true
				}
			})
		}
	}
}

func portKey(number int32, protocol string) string { return fmt.Sprintf("%d/%s", number, protocol) }

// number returns the model port; changed reports whether it differs from the host port.
func (b *portMap) number(number int32, protocol string) (n uint16, changed bool) {
	key := portKey(number, protocol)
	if n, ok := b.numbers[key]; ok {
		return n, n != uint16(number)
	}
	if b.numbers == nil {
		b.numbers, b.used = map[string]uint16{}, map[uint16]bool{}
	}
	n = uint16(number)
	for b.used[n] && b.next < 65535 {
		n = uint16(65535 - b.next)
		b.next++
	}
	b.numbers[key], b.used[n] = n, true
	return n, n != uint16(number)
}

// eachPort calls visit with each host port of a pod.
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

// hostPorts returns the model ports of a pod in ascending order, without duplicates.
func (t *Translator) hostPorts(p *Pod) []uint16 {
	var list []uint16
	p.eachPort(func(port *Port, number int32) {
		if port.HostIP != "" && !strings.HasPrefix(port.HostIP, "0.0.0.0") && port.HostIP != "::" {
			t.Report.info("host ports on one address of the node", "reserved on all addresses")
		}
		n, changed := t.ports.number(number, cmp.Or(port.Protocol, "TCP"))
		if changed {
			t.Report.info("host ports of UDP or SCTP with a number that TCP also uses", "replaced by a free number, from 65535 down")
		}
		list = append(list, n)
	})
	slices.Sort(list)
	return slices.Compact(list)
}
