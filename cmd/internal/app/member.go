package app

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/core/agent/member"
	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/sdk/client"
)

// startMember creates the agent of a member cluster and runs it until the process
// stops. Workloads that it started in the cluster continue to run.
func (p *Process) startMember(c *config.Config) error {
	m := &c.Member
	transport := p.certs.transport()
	p.down.push("connections of the member cluster", func(context.Context) error {
		transport.CloseIdleConnections()
		return nil
	})
	dial := func(token config.Secret, urls ...string) (*client.Client, error) {
		return client.New(client.Config{
			Address: strings.Join(urls, ","), Token: string(token), HTTPClient: &http.Client{Transport: transport},
			UserAgent: "cede-member/" + p.o.Build.Version, Silence: serverResponseTimeout,
		})
	}
	pools, err := memberPools(m, dial)
	if err != nil {
		return err
	}
	var driver member.Driver = member.NewSim(m.Capacity)
	if m.Driver == config.MemberCede {
		urls := m.Cede.Servers
		if len(urls) == 0 {
			urls = []string{p.URL()}
		}
		own, err := dial(m.Cede.Token, urls...)
		if err != nil {
			return err
		}
		driver = member.NewCedeDriver(member.CedeDriverConfig{Servers: own, Namespace: m.Cede.Namespace, Parse: parseTemplate})
	}
	a, err := member.New(member.Config{
		Pools: pools, Driver: driver, Cluster: cmp.Or(m.Cluster, c.Name), Attributes: m.Attributes,
		DataDir: p.dataPath("member"), Logger: p.log, Poll: m.Poll,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	p.down.push("member cluster", func(ctx context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return nil
}

// memberPools returns clients of the pools that the agent of a member cluster registers
// with.
func memberPools(m *config.Member, dial func(config.Secret, ...string) (*client.Client, error)) ([]member.Pool, error) {
	pools := m.Pools
	if len(pools) == 0 {
		pools = []config.MemberPool{{Servers: m.Servers, Token: m.Token}}
	}
	list := make([]member.Pool, 0, len(pools))
	for _, p := range pools {
		servers, err := dial(p.Token, p.Servers...)
		if err != nil {
			return nil, err
		}
		list = append(list, member.Pool{Name: p.Name, Servers: servers.MemberAgent()})
	}
	return list, nil
}

// parseTemplate parses the template of a binding: a job without an ID, which the
// assignment determines.
func parseTemplate(text []byte) (*client.Job, error) {
	var job map[string]any
	if err := json.Unmarshal(text, &job); err != nil {
		return nil, err
	}
	if job["id"] == nil && job["ID"] == nil && job["Job"] == nil && job["job"] == nil {
		job["id"] = "replica"
	}
	named, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	return jobspec.Parse("template.json", named)
}
