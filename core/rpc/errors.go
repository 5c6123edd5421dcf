package rpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cede-scheduler/cede/core/rpc/rpcpb"
)

// ErrUnknownServer is returned if the address of the called server is unknown.
var ErrUnknownServer = errors.New("unknown server address")

// ErrUnreachable is returned if the call did not reach the server: nothing happened there.
var ErrUnreachable = errors.New("server unreachable")

// ErrUntrusted is returned if the two servers belong to different clusters, or if one of
// them cannot prove its identity.
var ErrUntrusted = errors.New("connection refused: untrusted server")

// ErrNotWritten is returned by a server whose log did not accept an entry for some time:
// nothing was written, and the call can be repeated.
var ErrNotWritten = errors.New("nothing was written")

// A NotLeaderError is returned by a server that does not lead, or that lost leadership
// during the call: nothing was done.
type NotLeaderError struct {
	LeaderID string // "" if there is none
	Term     uint64 // of that leader, as far as the server has observed
}

func (e *NotLeaderError) Error() string {
	if e.LeaderID == "" {
		return fmt.Sprintf("not the leader in term %d; no leader known", e.Term)
	}
	return fmt.Sprintf("not the leader in term %d; the leader is %s", e.Term, e.LeaderID)
}

// toStatus converts an error of a Handler to a gRPC status.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	if away, ok := errors.AsType[*NotLeaderError](err); ok {
		s, detailed := status.New(codes.FailedPrecondition, away.Error()).WithDetails(&rpcpb.NotLeader{LeaderId: away.LeaderID, Term: away.Term})
		if detailed == nil {
			return s.Err()
		}
	}
	switch {
	case errors.Is(err, ErrNotWritten): // gRPC does not use this code itself
		return status.Error(codes.Aborted, err.Error())
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unknown, err.Error())
}

// fromStatus converts the gRPC status of a call to the error that the caller receives.
func fromStatus(ctx context.Context, to string, err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	for _, d := range s.Details() {
		if away, ok := d.(*rpcpb.NotLeader); ok {
			return &NotLeaderError{LeaderID: away.GetLeaderId(), Term: away.GetTerm()}
		}
	}
	remote := fmt.Errorf("server %s: %s", to, s.Message())
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", remote, context.DeadlineExceeded)
	case codes.Aborted:
		return fmt.Errorf("%w: %w", remote, ErrNotWritten)
	case codes.Unavailable:
		return fmt.Errorf("%w: %w", remote, ErrUnreachable)
	case codes.PermissionDenied, codes.Unauthenticated:
		return fmt.Errorf("%w: %w", remote, ErrUntrusted)
	}
	return remote
}
