package rpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cede-scheduler/cede/core/rpc/rpcpb"
)

// ErrUnknownServer means that nobody knows where the server to be asked is.
var ErrUnknownServer = errors.New("the address of the server is not known")

// ErrUnreachable means that the server was not asked: nothing happened there.
var ErrUnreachable = errors.New("the server cannot be reached")

// ErrStranger means that one of the two belongs to another cluster, or that it
// cannot show who it is.
var ErrStranger = errors.New("refused as a stranger")

// NotLeaderError is the answer of a server that does not lead, or stopped leading
// while the call waited: nothing was done.
type NotLeaderError struct {
	LeaderID string // "" where it knows none
	Term     uint64 // in which it knows that
}

func (e *NotLeaderError) Error() string {
	if e.LeaderID == "" {
		return fmt.Sprintf("not the leader in term %d, and none is known", e.Term)
	}
	return fmt.Sprintf("not the leader in term %d: %s is", e.Term, e.LeaderID)
}

// wire is an error of a Handler as it travels.
func wire(err error) error {
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

// unwire is an error of a call as its caller sees it.
func unwire(ctx context.Context, to string, err error) error {
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
	said := fmt.Errorf("server %s: %s", to, s.Message())
	switch s.Code() {
	case codes.Canceled, codes.DeadlineExceeded:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", said, context.DeadlineExceeded)
	case codes.Unavailable:
		return fmt.Errorf("%w: %w", said, ErrUnreachable)
	case codes.PermissionDenied, codes.Unauthenticated:
		return fmt.Errorf("%w: %w", said, ErrStranger)
	}
	return said
}
