package client

import (
	"context"
	"net/http"
)

// JoinResponse says through how many members a server joined a pool.
type JoinResponse struct {
	Joined int // members that were reached
}

// KeyringRequest names a key of gossip: base64 of 16, 24 or 32 bytes.
type KeyringRequest struct {
	Key string
}

// KeyringResponse is what every server of the pool says of its keys.
type KeyringResponse struct {
	Servers []*ServerKeys
}

// ServerKeys is the keys of gossip of one server, as digests: keys are not told.
type ServerKeys struct {
	Server string
	Keys   []string // the one that seals first
	Error  string   `json:",omitempty"` // why the server did not do what was asked
}

// Join has the server that answers join the pool of the servers that gossip at
// these addresses.
func (o Operator) Join(ctx context.Context, addresses ...string) (*JoinResponse, error) {
	r := o.c.call(http.MethodPut, "agent", "join")
	for _, a := range addresses {
		r.query.Add("address", a)
	}
	out := &JoinResponse{}
	_, err := r.do(ctx, out)
	return out, err
}

// Leave has the server that answers leave its pool for good, and stop.
func (o Operator) Leave(ctx context.Context) error {
	return o.c.write(ctx, http.MethodPut, nil, false, nil, nil, "agent", "leave")
}

// RemovePeer removes a server from replication that will not come back.
func (o Operator) RemovePeer(ctx context.Context, serverID string) error {
	r := o.c.call(http.MethodDelete, "operator", "raft", "peer")
	r.query.Set("id", serverID)
	_, err := r.do(ctx, nil)
	return err
}

// Keyring lists the keys that gossip is sealed with, of every server.
func (o Operator) Keyring(ctx context.Context) (*KeyringResponse, error) {
	out := &KeyringResponse{}
	_, err := o.c.get(ctx, nil, out, "operator", "keyring")
	return out, err
}

// KeyInstall has every server open what a key seals.
func (o Operator) KeyInstall(ctx context.Context, key string) (*KeyringResponse, error) {
	return o.key(ctx, http.MethodPut, "install", key)
}

// KeyUse has every server seal with a key that is installed.
func (o Operator) KeyUse(ctx context.Context, key string) (*KeyringResponse, error) {
	return o.key(ctx, http.MethodPut, "use", key)
}

// KeyRemove has every server forget a key that seals no more.
func (o Operator) KeyRemove(ctx context.Context, key string) (*KeyringResponse, error) {
	return o.key(ctx, http.MethodPut, "remove", key)
}

func (o Operator) key(ctx context.Context, method, verb, key string) (*KeyringResponse, error) {
	out := &KeyringResponse{}
	return out, o.c.write(ctx, method, nil, false, &KeyringRequest{Key: key}, out, "operator", "keyring", verb)
}
