package api

import (
	"encoding/hex"
	"maps"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/replication/snapshot"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

const (
	tagStatus = "status"
	tagHealth = "health"
)

func statusRoutes() []route {
	reader := []acl.Role{acl.Read, acl.Node}
	return []route{
		{
			methods: get, pattern: "/v1/status/leader", name: "status_leader", tag: tagStatus, roles: reader, scope: scopePublic,
			doc: `Returns the address of the leader, or "" if there is none.`, response: "", handle: leader,
		},
		{
			methods: get, pattern: "/v1/status/peers", name: "status_peers", tag: tagStatus, roles: reader, scope: scopePublic,
			doc: "Lists the addresses of the servers.", response: []string{}, handle: peers,
		},
		{
			methods: get, pattern: "/v1/agent/members", name: "agent_members", tag: tagStatus, roles: reader, scope: scopePublic,
			doc: "Lists the servers of the pool.", response: client.Members{}, handle: members,
		},
		{
			methods: get, pattern: "/v1/agent/self", name: "agent_self", tag: tagStatus, roles: reader, scope: scopePublic,
			doc: "Describes the agent that handles the request.", response: client.AgentSelf{}, handle: self,
		},
	}
}

func healthRoutes() []route {
	return []route{
		{
			methods: get, pattern: "/livez", name: "livez", tag: tagHealth, scope: scopePublic,
			doc: "Returns 200 while the process is alive.", response: client.Health{}, handle: livez,
		},
		readiness("/readyz", "readyz", "Returns 200 if the server is ready and 503 if it is not. With verbose, the response lists every check."),
		readiness("/healthz", "healthz", "Is /readyz."),
		{
			methods: get, pattern: "/v1/agent/health", name: "agent_health", tag: tagHealth, scope: scopePublic,
			doc:      "Returns the health of the server and of the node in this process. The status is 503 if one of them is not healthy.",
			response: client.AgentHealths{}, handle: agentHealth,
		},
		{
			methods: get, pattern: "/v1/openapi.json", name: "openapi", tag: tagHealth, scope: scopePublic, isBinary: true,
			doc: "Returns the OpenAPI document.", handle: openapi,
		},
	}
}

func readiness(pattern, name, doc string) route {
	return route{
		methods: get, pattern: pattern, name: name, tag: tagHealth, scope: scopePublic, doc: doc,
		params: []param{{"verbose", "boolean", "list every check"}}, response: client.Health{}, handle: readyz,
	}
}

func livez(*API, *call) (any, error) { return &client.Health{OK: true}, nil }

func readyz(a *API, c *call) (any, error) {
	verbose, err := queryFlag(c, "verbose")
	if err != nil {
		return nil, err
	}
	out, failed := &client.Health{OK: true}, []string{}
	for _, check := range a.cfg.Server.Ready(c.writeContext()) {
		h := client.HealthCheck{Name: check.Name, OK: check.OK, Detail: check.Detail}
		out.Checks = append(out.Checks, h)
		if !h.OK {
			out.OK = false
			failed = append(failed, h.Name+": "+h.Detail)
		}
	}
	if out.OK {
		if !verbose {
			out.Checks = nil
		}
		return out, nil
	}
	f := rest.Unavailable("the server is not ready: %s", strings.Join(failed, "; ")).With("OK", false)
	if verbose {
		return nil, f.With("Checks", out.Checks)
	}
	return nil, f
}

func leader(a *API, c *call) (any, error) {
	c.setStateHeaders(a.cfg.Server.Snapshot())
	if a.cfg.Replication == nil {
		return a.cfg.ID, nil
	}
	_, addr := a.cfg.Replication.Leader()
	return addr, nil
}

func peers(a *API, c *call) (any, error) {
	c.setStateHeaders(a.cfg.Server.Snapshot())
	list := []string{}
	for _, s := range a.servers() {
		list = append(list, s.Address)
	}
	return list, nil
}

// memberList returns the known servers: those of gossip or, without gossip, those of
// the Raft configuration.
func (a *API) memberList() []Member {
	servers := a.servers()
	list := a.knownMembers()
	for i := range list {
		raft := ""
		for _, s := range servers {
			if s.ID == list[i].Name {
				raft = s.Address
			}
		}
		a.nomadTags(&list[i], raft)
	}
	return list
}

// knownMembers returns the known servers with the tags that they publish.
func (a *API) knownMembers() []Member {
	if a.cfg.Process.Members != nil {
		return a.cfg.Process.Members()
	}
	var list []Member
	for _, s := range a.servers() {
		m := Member{Name: s.ID, Address: s.Address, Status: "alive"}
		if s.Node != s.ID {
			m.Tags = nameTag(s.Node)
		}
		list = append(list, m)
	}
	if len(list) == 0 {
		list = append(list, Member{Name: a.cfg.ID, Status: "alive", Tags: nameTag(a.cfg.Process.Name)})
	}
	return list
}

func memberOf(m Member) *client.Member {
	out := &client.Member{Name: m.Name, Status: m.Status, Tags: m.Tags, Addr: m.Address}
	if h, port, err := net.SplitHostPort(m.Address); err == nil {
		n, _ := strconv.ParseUint(port, 10, 16)
		out.Addr, out.Port = h, uint16(n)
	}
	return out
}

func members(a *API, c *call) (any, error) {
	c.setStateHeaders(a.cfg.Server.Snapshot())
	out := &client.Members{ServerName: a.cfg.ID, ServerRegion: a.cfg.Region, ServerDC: a.cfg.Datacenter, Members: []*client.Member{}}
	for _, m := range a.memberList() {
		out.Members = append(out.Members, memberOf(m))
	}
	return out, nil
}

// self returns the description of the agent that Nomad's clients read at the start.
func self(a *API, c *call) (any, error) {
	snap := a.cfg.Server.Snapshot()
	c.setStateHeaders(snap)
	out := &client.AgentSelf{
		Config: map[string]any{
			"Region": a.cfg.Region, "Datacenter": a.cfg.Datacenter, "NodeName": a.cfg.ID,
			"Version": map[string]string{"Version": a.cfg.Version}, "ACL": map[string]bool{"Enabled": a.cfg.Security},
			// Nomad's commands otherwise print links to Nomad's web pages, which do not exist here.
			"UI": map[string]bool{"ShowCLIHints": false},
		},
		Member: client.Member{Name: a.cfg.ID, Status: "alive"},
	}
	if a.cfg.Process.Config != nil {
		maps.Copy(out.Config, a.cfg.Process.Config())
	}
	for _, m := range a.memberList() {
		if m.Name == a.cfg.ID {
			out.Member = *memberOf(m)
		}
	}
	known, _ := a.leadership()
	out.Stats = map[string]map[string]string{
		"cede": {
			"leader": strconv.FormatBool(a.cfg.Replication == nil || a.cfg.Replication.IsLeader()), "known_leader": strconv.FormatBool(known),
			"index": strconv.FormatUint(snap.Index(), 10), "nodes": strconv.Itoa(snap.NodeCount()), "allocations": strconv.Itoa(snap.AllocCount()),
		},
		"runtime": {"goroutines": strconv.Itoa(runtime.NumGoroutine()), "go": runtime.Version()},
	}
	return out, nil
}

func hashOf(s *state.Snapshot) string {
	h := snapshot.Hash(s)
	return hex.EncodeToString(h[:])
}

func openapi(_ *API, c *call) (any, error) {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(document) // an error means that the client disconnected
	return responded, nil
}
