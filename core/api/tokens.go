package api

import (
	"slices"

	"github.com/cede-scheduler/cede/core/acl"
	"github.com/cede-scheduler/cede/core/api/rest"
	"github.com/cede-scheduler/cede/core/api/view"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/sdk/client"
)

const tagTokens = "tokens"

func tokenRoutes() []route {
	management := []acl.Role{acl.Management}
	return []route{
		{
			methods: putMethods, pattern: "/v1/acl/bootstrap", name: "acl_bootstrap", tag: tagTokens, scope: scopePublic, leaderOnly: true,
			doc: "Creates the first token, which has every role. It succeeds once.", response: client.Token{}, handle: bootstrap,
		},
		{
			methods: get, pattern: "/v1/acl/tokens", name: "tokens_list", tag: tagTokens, roles: management,
			doc: "Lists tokens without their secrets, ordered by accessor.", isQuery: true, isPaged: true, response: []*client.Token{}, handle: listTokens,
		},
		{
			methods: get, pattern: "/v1/acl/token/self", name: "token_self", tag: tagTokens, scope: scopePublic, roles: acl.Roles,
			doc: "Returns the token of the caller, without its secret.", response: client.Token{}, handle: ownToken,
		},
		{
			methods: get, pattern: "/v1/acl/token/{accessor}", name: "token_get", tag: tagTokens, roles: management,
			doc: "Returns a token, without its secret. The accessor may be any unique prefix.", response: client.Token{}, handle: getToken,
		},
		{
			methods: putMethods, pattern: "/v1/acl/token", name: "token_create", tag: tagTokens, roles: management, leaderOnly: true,
			doc: "Creates a token. Only this response contains its secret.", request: client.TokenCreateRequest{}, response: client.Token{}, handle: withBody(createToken),
		},
		{
			methods: remove, pattern: "/v1/acl/token/{accessor}", name: "token_delete", tag: tagTokens, roles: management, leaderOnly: true,
			doc: "Revokes a token.", response: client.IndexResponse{}, handle: deleteToken,
		},
	}
}

func bootstrap(a *API, c *call) (any, error) {
	if !a.cfg.Security {
		return nil, rest.Invalid("ACLs are disabled: tokens are not checked").WithHint("set acl.enabled on every server first")
	}
	return c.tokenResponse(a.cfg.Server.BootstrapToken(c.writeContext()))
}

func (c *call) tokenResponse(secret string, t *model.Token, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Cache-Control", "no-store")
	c.setIndexHeaders(max(t.CreateIndex, 1))
	out := view.Token(t)
	out.SecretID = secret
	return out, nil
}

func createToken(a *API, c *call, req *client.TokenCreateRequest) (any, error) {
	if req.Name == "" || len(req.Name) > 256 {
		return nil, rest.Invalid("invalid Name of %d bytes: it must have between 1 and 256 bytes", len(req.Name)).With("Field", "Name")
	}
	return c.tokenResponse(a.cfg.Server.CreateToken(c.writeContext(), endpoint.NewToken{Name: req.Name, Roles: req.Roles, Namespace: req.Namespace, TTL: req.TTL}))
}

func listTokens(a *API, c *call) (any, error) {
	part, err := c.page()
	if err != nil {
		return nil, err
	}
	snap, err := c.snapshot()
	if err != nil {
		return nil, err
	}
	p := pager[*client.Token]{page: part}
	for _, t := range snap.Tokens() {
		if !p.add(pageKey(t.Accessor), func() *client.Token { return view.Token(t) }) {
			break
		}
	}
	c.setStateHeaders(snap)
	return p.result(c), nil
}

func ownToken(a *API, c *call) (any, error) {
	if c.token == nil {
		return nil, rest.NotFound("ACLs are disabled: tokens are not used").WithHint("set acl.enabled on every server")
	}
	c.setStateHeaders(a.cfg.Server.Snapshot())
	return view.Token(c.token), nil
}

func getToken(a *API, c *call) (any, error) {
	snap := a.cfg.Server.Snapshot()
	accessor := c.r.PathValue("accessor")
	t := snap.Token(accessor)
	if t == nil {
		var err error
		if t, err = findByPrefix(c, "token", accessor, slices.Values(snap.Tokens()), func(t *model.Token) (string, string) { return t.Accessor, "" }); err != nil {
			return nil, err
		}
	}
	c.setStateHeaders(snap)
	return view.Token(t), nil
}

func deleteToken(a *API, c *call) (any, error) {
	return c.indexResponse(a.cfg.Server.DeleteToken(c.writeContext(), c.r.PathValue("accessor")))
}
