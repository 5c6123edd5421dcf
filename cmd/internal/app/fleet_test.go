package app

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/agent"
	"github.com/cede-scheduler/cede/sdk/client"
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// Many nodes on one server: all register, each runs the system job's allocation, and
// none is marked down.
func TestFleet_RegistersAndRunsOnServer(t *testing.T) {
	t.Parallel()
	nodes := soak.Count(100, 5000)
	s := start(t, load(t, config.Sources{Dev: true, Flags: loopback(map[string]string{"client.enabled": "false", "limits.rate": "0"})}))
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 64
	defer transport.CloseIdleConnections()
	c, err := client.New(client.Config{Address: s.URL(), HTTPClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	f, err := agent.NewFleet(agent.FleetConfig{
		Servers: agent.Remote(c.NodeAgent()), Nodes: nodes, Workers: 64, Poll: time.Second,
		Node: func(n int) agent.Node {
			return agent.Node{Name: fmt.Sprint("sim-", n), Datacenter: "dc1", Capacity: map[string]int64{"cpu": 4000, "memory": 8192}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	within, stop := context.WithTimeout(ctx, 3*patience)
	defer stop()
	began := time.Now()
	if err := f.WaitRegistered(within); err != nil {
		t.Fatalf("%v: %+v\n%s", err, f.Stats(), s.log)
	}
	t.Logf("%d nodes registered within %v", nodes, time.Since(began))
	everywhere := job("everywhere", 50, 1, 100, "sim", nil)
	everywhere.Type = "system"
	began = time.Now()
	s.register(everywhere)
	running := func() (n int) {
		for _, a := range s.allocs("everywhere") {
			if a.ClientStatus == "running" {
				n++
			}
		}
		return n
	}
	for end := time.Now().Add(6 * patience); running() < nodes; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d of %d nodes run the job: %+v\n%s", running(), nodes, f.Stats(), s.log)
		}
	}
	t.Logf("all run the job within %v: %+v", time.Since(began), f.Stats())
	list, _, err := s.c.Nodes().List(t.Context(), nil)
	if err != nil || len(list) != nodes {
		t.Fatalf("%d nodes, %v", len(list), err)
	}
	for _, n := range list {
		if n.Status != "ready" {
			t.Errorf("node %s is %s", n.Name, n.Status)
		}
	}
}
