package client

import (
	"context"
	"net/http"
	"strconv"
)

// Jobs holds the calls for jobs; see Client.Jobs.
type Jobs struct{ c *Client }

// RegisterOptions holds the options of Register and Run.
type RegisterOptions struct {
	WriteOptions
	// Check makes the call fail with a conflict if the job's JobModifyIndex differs
	// from it; 0 means that the job must not exist. nil: no check.
	Check *uint64
}

func (o *RegisterOptions) request(job *Job, token string) (*WriteOptions, *JobRegisterRequest) {
	req := &JobRegisterRequest{Job: job, PlanToken: token}
	if o == nil {
		return nil, req
	}
	if o.Check != nil {
		req.EnforceIndex, req.JobModifyIndex = true, *o.Check
	}
	return &o.WriteOptions, req
}

// StopOptions holds the options of Stop.
type StopOptions struct {
	WriteOptions
	Purge bool // delete the job as well, once none of its allocations runs
}

// Register registers a job, or a new version of it.
func (j Jobs) Register(ctx context.Context, job *Job, o *RegisterOptions) (*JobRegisterResponse, error) {
	return j.Run(ctx, job, "", o)
}

// Run commits the plan of the job that the token identifies, without scheduling
// again. It returns a conflict if the plan is outdated.
func (j Jobs) Run(ctx context.Context, job *Job, token string, o *RegisterOptions) (*JobRegisterResponse, error) {
	w, req := o.request(job, token)
	out := &JobRegisterResponse{}
	return out, j.c.write(ctx, http.MethodPost, w, true, req, out, "jobs")
}

// Plan returns the changes that registering the job would make. It changes nothing.
func (j Jobs) Plan(ctx context.Context, job *Job, w *WriteOptions) (*JobPlanResponse, error) {
	out := &JobPlanResponse{}
	return out, j.c.write(ctx, http.MethodPost, w, true, &JobPlanRequest{Job: job}, out, "job", job.ID, "plan")
}

// Validate returns every problem of a job.
func (j Jobs) Validate(ctx context.Context, job *Job) (*JobValidateResponse, error) {
	out := &JobValidateResponse{}
	return out, j.c.write(ctx, http.MethodPost, nil, true, &JobValidateRequest{Job: job}, out, "validate", "job")
}

// Parse converts a job file into a job.
func (j Jobs) Parse(ctx context.Context, req *JobsParseRequest) (*Job, error) {
	out := &Job{}
	return out, j.c.write(ctx, http.MethodPost, nil, true, req, out, "jobs", "parse")
}

// Stop stops a job.
func (j Jobs) Stop(ctx context.Context, id string, o *StopOptions) (*JobStopResponse, error) {
	r := j.c.call(http.MethodDelete, "job", id)
	if o != nil {
		o.apply(r)
		r.query.Set("purge", strconv.FormatBool(o.Purge))
	}
	out := &JobStopResponse{}
	_, err := r.once().do(ctx, out)
	return out, err
}

// Evaluate creates a new evaluation of a job.
func (j Jobs) Evaluate(ctx context.Context, id string, w *WriteOptions) (*JobStopResponse, error) {
	out := &JobStopResponse{}
	return out, j.c.write(ctx, http.MethodPost, w, false, nil, out, "job", id, "evaluate")
}

// List lists jobs, ascending by namespace and id.
func (j Jobs) List(ctx context.Context, q *QueryOptions) (list []*JobStub, meta *QueryMeta, err error) {
	meta, err = j.c.get(ctx, q, &list, "jobs")
	return list, meta, err
}

// Get returns a job.
func (j Jobs) Get(ctx context.Context, id string, q *QueryOptions) (*Job, *QueryMeta, error) {
	out := &Job{}
	meta, err := j.c.get(ctx, q, out, "job", id)
	return out, meta, err
}

// Summary returns the counts of a job's allocations.
func (j Jobs) Summary(ctx context.Context, id string, q *QueryOptions) (*JobSummary, *QueryMeta, error) {
	out := &JobSummary{}
	meta, err := j.c.get(ctx, q, out, "job", id, "summary")
	return out, meta, err
}

// Versions lists the last versions of a job, the newest first.
func (j Jobs) Versions(ctx context.Context, id string, q *QueryOptions) ([]*Job, *QueryMeta, error) {
	out := &JobVersionsResponse{}
	meta, err := j.c.get(ctx, q, out, "job", id, "versions")
	return out.Versions, meta, err
}

// Allocations lists a job's allocations.
func (j Jobs) Allocations(ctx context.Context, id string, q *QueryOptions) (list []*AllocationStub, meta *QueryMeta, err error) {
	meta, err = j.c.get(ctx, q, &list, "job", id, "allocations")
	return list, meta, err
}

// Evaluations lists a job's evaluations.
func (j Jobs) Evaluations(ctx context.Context, id string, q *QueryOptions) (list []*Evaluation, meta *QueryMeta, err error) {
	meta, err = j.c.get(ctx, q, &list, "job", id, "evaluations")
	return list, meta, err
}

// Forecast predicts when the waiting instances of a job start.
func (j Jobs) Forecast(ctx context.Context, id string, q *QueryOptions) (out *JobForecast, meta *QueryMeta, err error) {
	meta, err = j.c.get(ctx, q, &out, "job", id, "forecast")
	return out, meta, err
}
