package client

import (
	"context"
	"net/http"
)

// JoinResponse is the result of joining a pool.
type JoinResponse struct {
	Joined int // members that were reached
}

// KeyringRequest holds a gossip key: base64 of 16, 24 or 32 bytes.
type KeyringRequest struct {
	Key string
}

// KeyringResponse holds the keyring of every server of the pool.
type KeyringResponse struct {
	Servers []*ServerKeys
}

// ServerKeys holds the gossip keys of one server, as digests: keys are not disclosed.
type ServerKeys struct {
	Server string
	Keys   []string // the first one encrypts
	Error  string   `json:",omitempty"` // reason why the server did not apply the request
}

// Join makes the responding server join the pool of the servers at these gossip
// addresses.
func (o Operator) Join(ctx context.Context, addresses ...string) (*JoinResponse, error) {
	r := o.c.call(http.MethodPut, "agent", "join")
	for _, a := range addresses {
		r.query.Add("address", a)
	}
	out := &JoinResponse{}
	_, err := r.do(ctx, out)
	return out, err
}

// Leave makes the responding server leave its pool permanently and stop.
func (o Operator) Leave(ctx context.Context) error {
	return o.c.write(ctx, http.MethodPut, nil, false, nil, nil, "agent", "leave")
}

// RemovePeer removes a lost server from replication.
func (o Operator) RemovePeer(ctx context.Context, serverID string) error {
	r := o.c.call(http.MethodDelete, "operator", "raft", "peer")
	r.query.Set("id", serverID)
	_, err := r.do(ctx, nil)
	return err
}

// Keyring returns the gossip keys of every server.
func (o Operator) Keyring(ctx context.Context) (*KeyringResponse, error) {
	out := &KeyringResponse{}
	_, err := o.c.get(ctx, nil, out, "operator", "keyring")
	return out, err
}

// KeyInstall adds a key to every server's keyring, for decryption.
func (o Operator) KeyInstall(ctx context.Context, key string) (*KeyringResponse, error) {
	return o.key(ctx, http.MethodPut, "install", key)
}

// KeyUse makes every server encrypt with a key that is installed.
func (o Operator) KeyUse(ctx context.Context, key string) (*KeyringResponse, error) {
	return o.key(ctx, http.MethodPut, "use", key)
}

// KeyRemove removes a key that no longer encrypts from every server's keyring.
func (o Operator) KeyRemove(ctx context.Context, key string) (*KeyringResponse, error) {
	return o.key(ctx, http.MethodPut, "remove", key)
}

func (o Operator) key(ctx context.Context, method, verb, key string) (*KeyringResponse, error) {
	out := &KeyringResponse{}
	return out, o.c.write(ctx, method, nil, false, &KeyringRequest{Key: key}, out, "operator", "keyring", verb)
}
