package process

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/serve/policypb"
)

const (
	// maxOverhead is the maximum size of an answer beyond its frame, in bytes.
	maxOverhead = 1 << 10
	// disconnectGrace is how long a process may take to exit after its connection broke.
	disconnectGrace = time.Second
)

// call sends a frame to the process and returns the answer. Any fault ends the process,
// because its state can no longer be trusted.
func (p *process) call(op abi.Op, frame []byte, limit time.Duration) (*policypb.Answer, *policy.Error) {
	if !p.runner.isAlive() {
		return nil, p.exitedFault()
	}
	if len(frame) > policypb.MaxMessage-maxOverhead {
		return nil, fault(policy.FaultLimit, "", "frame has %d MiB: must be at most %d", len(frame)>>20, policypb.MaxMessage>>20)
	}
	// The deadline is enforced here and not sent along: the guest's gRPC server would end
	// the call slightly earlier itself, as if the policy had failed.
	ctx, cancel := context.WithCancelCause(context.Background())
	watch := time.AfterFunc(limit, func() { cancel(context.DeadlineExceeded) })
	defer watch.Stop()
	defer cancel(nil)
	answer, err := p.policy.Call(ctx, &policypb.Request{Op: uint32(op), Frame: frame}, grpc.MaxCallRecvMsgSize(len(frame)+maxOverhead))
	if err != nil {
		bad := p.callError(ctx, err, limit)
		p.close()
		return nil, bad
	}
	return answer, nil
}

// exitedFault returns the fault of a process that ended since its last call.
func (p *process) exitedFault() *policy.Error {
	if _, ours := p.runner.exitStatus(); ours {
		return closedFault()
	}
	<-p.runner.exited
	return p.exitFault("between two calls")
}

// callError returns the fault of a failed call.
func (p *process) callError(ctx context.Context, err error, limit time.Duration) *policy.Error {
	code := status.Code(err)
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		p.runner.kill()
		return fault(policy.FaultTimeout, hintTime, "call took longer than %v, process was killed%s", limit, p.outputSuffix())
	}
	if code == codes.Unavailable || code == codes.Canceled {
		p.waitOrKill(disconnectGrace)
		switch _, ours := p.runner.exitStatus(); {
		case !ours:
			return p.exitFault("during the call")
		case p.host.isClosing():
			return closedFault()
		}
		return fault(policy.FaultGuest, "", "connection closed during the call%s", p.outputSuffix())
	}
	p.runner.kill()
	text := clean(status.Convert(err).Message())
	if code == codes.ResourceExhausted {
		return fault(policy.FaultAnswer, "answer in the frame that was received", "answer is larger than the request frame: %s", text)
	}
	return fault(policy.FaultABI, hintRebuild, "gRPC error %v: %s", code, text)
}
