package api

import (
	"fmt"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
	"github.com/cede-scheduler/cede/sdk/client"
)

const (
	tagClusters = "member clusters"
	tagMember   = "member cluster agents"
)

func clusterRoutes() []route {
	reader, operator, agent := []acl.Role{acl.Read}, []acl.Role{acl.Operate}, []acl.Role{acl.Node}
	return []route{
		{
			methods: get, pattern: "/v1/clusters", name: "clusters_list", tag: tagClusters, roles: reader,
			doc: "Lists member clusters, ordered by ID.", isQuery: true, isPaged: true,
			response: []*client.Cluster{}, handle: listClusters,
		},
		{
			methods: get, pattern: "/v1/cluster/{id}", name: "cluster_get", tag: tagClusters, roles: reader,
			doc: "Returns a member cluster. The ID may be any unique prefix.", isQuery: true,
			response: client.Cluster{}, handle: getCluster,
		},
		{
			methods: putMethods, pattern: "/v1/cluster/{id}", name: "cluster_put", tag: tagClusters, roles: operator, leaderOnly: true,
			doc:     "Creates or updates a member cluster without an agent. Its assignments are simulated: they start and end on a timer.",
			request: client.Cluster{}, response: client.IndexResponse{}, handle: withBody(putCluster),
		},
		{
			methods: remove, pattern: "/v1/cluster/{id}", name: "cluster_delete", tag: tagClusters, roles: operator, leaderOnly: true,
			doc:      "Deletes a member cluster. If it has assignments, the request fails with a conflict, unless force is set: then they are moved to other clusters.",
			params:   []param{{"force", "boolean", "delete the cluster even if it has assignments"}},
			response: client.IndexResponse{}, handle: deleteCluster,
		},
		{
			methods: putMethods, pattern: "/v1/cluster/{id}/agent", name: "cluster_register", tag: tagMember, roles: agent, leaderOnly: true,
			doc:     "Registers a member cluster: its capacity, and the secret that its later requests must carry.",
			request: client.ClusterRegisterRequest{}, response: client.NodeLease{}, handle: withBody(registerCluster),
		},
		{
			methods: putMethods, pattern: "/v1/cluster/{id}/heartbeat", name: "cluster_heartbeat", tag: tagMember, roles: agent, leaderOnly: true,
			doc:     "Renews the lease of a member cluster and reports the capacity that bindings may use. The header X-Cede-Node-Secret carries its secret.",
			request: client.ClusterHeartbeatRequest{}, response: client.NodeLease{}, handle: withBody(clusterHeartbeat),
		},
		{
			methods: get, pattern: "/v1/cluster/{id}/assignments", name: "cluster_assignments", tag: tagMember, roles: []acl.Role{acl.Read, acl.Node},
			doc: "Lists the assignments that hold capacity on a member cluster, with their bindings, ordered by ID.", isQuery: true,
			params:   []param{{"claims", "boolean", "append the claims of bindings, as assignments with DesiredStatus claim"}},
			response: []*client.Assignment{}, handle: clusterAssignments,
		},
		{
			methods: putMethods, pattern: "/v1/cluster/{id}/assignments", name: "cluster_update_assignments", tag: tagMember, roles: agent, leaderOnly: true,
			doc:     "Reports the status of a member cluster's assignments. The header X-Cede-Node-Secret carries its secret.",
			request: client.AssignmentUpdateRequest{}, response: client.IndexResponse{}, handle: withBody(updateAssignments),
		},
	}
}

var clusterKind = resource[model.Cluster]{
	name: "cluster", table: state.TableClusters, get: (*state.Snapshot).Cluster, all: (*state.Snapshot).Clusters,
	keyOf: func(m *model.Cluster) (string, string) { return m.ID, "" },
}

func listClusters(_ *API, c *call) (any, error) {
	return readList(c, clusterKind, nil, func(s *state.Snapshot, m *model.Cluster) *client.Cluster { return clusterView(c, s, m) })
}

func getCluster(_ *API, c *call) (any, error) {
	return readOne(c, clusterKind, func(s *state.Snapshot, m *model.Cluster) (any, uint64) {
		return clusterView(c, s, m), max(m.ModifyIndex, s.ClusterChangeIndex(m.ID))
	})
}

// clusterView converts a member cluster. Claims of namespaces that the caller may not
// read are omitted.
func clusterView(c *call, s *state.Snapshot, m *model.Cluster) *client.Cluster {
	out := &client.Cluster{
		ID: m.ID, Capacity: m.Capacity, Attributes: m.Attributes, Status: "ready", Agent: m.SecretHash != [32]byte{},
		Reported: m.Reported, CreateIndex: m.CreateIndex, ModifyIndex: m.ModifyIndex,
	}
	if out.Capacity == nil {
		out.Capacity = map[string]int64{}
	}
	if m.Down {
		out.Status = "down"
	}
	free := m.Avail
	for _, a := range s.ClusterAssignments(m.ID) {
		free.Sub(&a.Vec)
		out.Assignments++
		if !a.Live() {
			out.Stopping++
		}
	}
	now := c.api.cfg.Clock.Now().UnixNano()
	for _, claim := range s.ClusterClaims(m.ID) {
		if claim.Expiry <= now {
			continue
		}
		free.Sub(&claim.Vec)
		if c.canSee(claim.Claimant.Namespace) {
			out.Claims = append(out.Claims, claimOf(s, claim))
		}
	}
	out.Free = map[string]int64{}
	for name := range m.Capacity {
		out.Free[name] = max(0, free[s.Dims().Index(name)])
	}
	return out
}

func claimOf(s *state.Snapshot, m *model.Claim) *client.ClusterClaim {
	out := &client.ClusterClaim{
		ID: m.ID, ClusterID: m.ClusterID, Namespace: m.Claimant.Namespace, BindingID: m.Claimant.ID,
		Resources: s.Dims().Resources(&m.Vec), Priority: int(m.Priority), Expiry: m.Expiry,
	}
	if pool, id, ok := m.ForeignLease(); ok {
		out.Pool, out.Expiry = pool, 0
		key, _, ok := model.ParseClaimID(id)
		if !ok {
			key, _, _ = model.ParseAssignmentID(id)
		}
		out.Namespace, out.BindingID = key.Namespace, key.ID
	}
	return out
}

func putCluster(a *API, c *call, req *client.Cluster) (any, error) {
	id := c.r.PathValue("id")
	if err := checkPathID("cluster", id, req.ID); err != nil {
		return nil, err
	}
	return c.indexResponse(a.cfg.Server.PutCluster(c.writeContext(), &model.Cluster{ID: id, Capacity: req.Capacity, Attributes: req.Attributes}))
}

func deleteCluster(a *API, c *call) (any, error) {
	force, err := queryFlag(c, "force")
	if err != nil {
		return nil, err
	}
	return c.indexResponse(a.cfg.Server.DeleteCluster(c.writeContext(), c.r.PathValue("id"), force))
}

func registerCluster(a *API, c *call, req *client.ClusterRegisterRequest) (any, error) {
	m := &model.Cluster{ID: c.r.PathValue("id"), Capacity: req.Capacity, Attributes: req.Attributes, Reported: req.Reported}
	return c.leaseResponse(a.cfg.Server.RegisterMember(c.writeContext(), m, req.Secret))
}

func clusterHeartbeat(a *API, c *call, req *client.ClusterHeartbeatRequest) (any, error) {
	report := &endpoint.ClusterReport{Reported: req.Reported}
	for _, l := range req.Leases {
		report.Leases = append(report.Leases, endpoint.ClusterLease{Pool: l.Pool, ID: l.ID, Resources: l.Resources, Priority: int32(l.Priority)})
	}
	return c.leaseResponse(a.cfg.Server.ClusterHeartbeat(c.writeContext(), c.r.PathValue("id"), nodeSecret(c), report))
}

func clusterAssignments(_ *API, c *call) (any, error) {
	id := clusterKind.resolveID(c)
	if err := requireOwnCluster(c, id); err != nil {
		return nil, err
	}
	claims, err := queryFlag(c, "claims")
	if err != nil {
		return nil, err
	}
	return c.read(query{
		keys: []state.Key{state.TableClusters.Of(id), state.TableBindings.All()}, table: state.TableClusters, wholeTable: true,
		render: func(s *state.Snapshot) (any, uint64, error) {
			if s.Cluster(id) == nil {
				return nil, 0, rest.NotFound("cluster %s not found", rest.Quote(id)).WithHint("an agent registers its cluster when it starts")
			}
			list, changed := []*client.Assignment{}, s.ClusterChangeIndex(id)
			for _, a := range s.ClusterAssignments(id) {
				if !c.canSee(a.Binding.Namespace) {
					continue
				}
				out := assignmentOf(s, a)
				changed = max(changed, a.ModifyIndex)
				if b := s.Binding(a.Binding); b != nil {
					out.Binding, out.Preempts = bindingOf(b), s.Config().BindingsPreempt() && b.Preempts
					changed = max(changed, b.ModifyIndex)
				}
				list = append(list, out)
			}
			if claims {
				list = append(list, claimsOf(c, s, id)...)
			}
			return list, changed, nil
		},
	})
}

// claimsOf returns the claims of bindings on a member cluster, in the form of
// assignments.
func claimsOf(c *call, s *state.Snapshot, id string) (list []*client.Assignment) {
	now := c.api.cfg.Clock.Now().UnixNano()
	for _, claim := range s.ClusterClaims(id) {
		b := s.Binding(claim.Claimant)
		if b == nil || claim.Expiry <= now || !c.canSee(b.Namespace) {
			continue
		}
		list = append(list, &client.Assignment{
			ID: claim.ID, Namespace: b.Namespace, BindingID: b.ID, ClusterID: id, Replicas: b.FittingReplicas(&claim.Vec, b.Replicas), Priority: int(claim.Priority),
			DesiredStatus: client.DesiredClaim, ClientStatus: model.ClientPending.String(), CreateIndex: claim.CreateIndex, ModifyIndex: claim.CreateIndex,
			Preempts: s.Config().BindingsPreempt() && b.Preempts, Binding: bindingOf(b),
		})
	}
	return list
}

// requireOwnCluster returns an error if an agent's request lacks the secret of the
// member cluster.
func requireOwnCluster(c *call, id string) error {
	m := c.api.cfg.Server.Snapshot().Cluster(id)
	if m == nil {
		return nil
	}
	return requireSecret(c, "cluster", id, m.SecretHash)
}

func updateAssignments(a *API, c *call, req *client.AssignmentUpdateRequest) (any, error) {
	updates, err := decodeReport(req.Updates, func(u *client.AssignmentUpdate) (apply.AssignmentUpdate, string) {
		status, ok := clientStatuses[u.ClientStatus]
		if u.AssignmentID == "" || !ok || u.Ready < 0 {
			return apply.AssignmentUpdate{}, fmt.Sprintf("invalid assignment %s with status %s and %d ready: it must have an ID, a status of pending, running, complete or failed, and a non-negative number",
				rest.Quote(u.AssignmentID), rest.Quote(u.ClientStatus), u.Ready)
		}
		return apply.AssignmentUpdate{
			ID: u.AssignmentID, Client: status, Ready: u.Ready, Text: truncate(u.Description), StartTime: u.StartTime,
		}, ""
	})
	if err != nil {
		return nil, err
	}
	return c.indexResponse(a.cfg.Server.UpdateAssignments(c.writeContext(), c.r.PathValue("id"), nodeSecret(c), updates))
}
