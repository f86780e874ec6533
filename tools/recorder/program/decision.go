package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

// decision is all that is recorded of one scheduling cycle.
type decision struct {
	PreEnqueue           map[string]verdict          `json:"preenqueue,omitempty"`
	Profile              *profileInEffect            `json:"profile,omitempty"`
	PreFilter            *preFilterResult            `json:"prefilter,omitempty"`
	Filter               map[string]any              `json:"filter,omitempty"`
	PreScore             map[string]string           `json:"prescore,omitempty"`
	Weights              map[string]int64            `json:"weights,omitempty"`
	Scores               map[string]map[string]score `json:"scores,omitempty"`
	Total                map[string]int64            `json:"total,omitempty"`
	Best                 []string                    `json:"best,omitempty"`
	SelectedByNomination string                      `json:"selected_by_nomination,omitempty"`
	FitError             string                      `json:"fit_error,omitempty"`
	FitErrorFinal        string                      `json:"fit_error_final,omitempty"`
	PostFilter           *postFilterResult           `json:"postfilter,omitempty"`
}

type verdict struct {
	Plugin     string             `json:"plugin"`
	Code       string             `json:"code"`
	Reasons    []string           `json:"reasons"`
	Also       map[string]verdict `json:"also,omitempty"`
	ExcludedBy []string           `json:"excluded_by,omitempty"`
}

type profileInEffect struct {
	PreFilter  []string `json:"preFilter"`
	Filter     []string `json:"filter"`
	PostFilter []string `json:"postFilter"`
	PreScore   []string `json:"preScore"`
	Score      [][2]any `json:"score"`
}

type preFilterResult struct {
	Code    string            `json:"code"`
	Plugin  string            `json:"plugin,omitempty"`
	Reasons []string          `json:"reasons,omitempty"`
	Nodes   []string          `json:"nodes,omitempty"`
	Plugins map[string]string `json:"plugins"`
}

type score struct {
	Raw        int64 `json:"raw"`
	Normalized int64 `json:"normalized"`
	Weighted   int64 `json:"weighted"`
}

// cycle is one pod on its way through one profile.
type cycle struct {
	cluster *cluster
	profile framework.Framework
	seen    *observed
	pod     *v1.Pod
	state   fwk.CycleState
	nodes   []fwk.NodeInfo
}

func recordDecision(text json.RawMessage) (*decision, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asked := &scenario{}
	if err := decodeStrictly(text, asked); err != nil {
		return nil, err
	}
	if asked.Pod == nil {
		return nil, errors.New("its scenario has no pod; add the one to place")
	}
	withIdentity(asked.Pod)
	built, err := newCluster(ctx, asked.Config, asked.objects(), clock.RealClock{})
	if err != nil {
		return nil, err
	}
	// Preemption reads the pod again from the informer. Nobody is told of one put there directly.
	if err := built.informers.Core().V1().Pods().Informer().GetIndexer().Add(asked.Pod); err != nil {
		return nil, err
	}
	chosen, err := built.profileFor(asked.Pod)
	if err != nil {
		return nil, err
	}
	nodes, err := chosen.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, err
	}
	answer := &decision{}
	if answer.PreEnqueue = preEnqueue(ctx, chosen, asked.Pod); answer.PreEnqueue != nil {
		return answer, nil
	}
	if asked.Config != nil {
		answer.Profile = inEffect(chosen.ListPlugins())
	}
	seen, err := observe(chosen)
	if err != nil {
		return nil, err
	}
	turn := &cycle{built, chosen, seen, asked.Pod, framework.NewCycleState(), nodes}
	return answer, turn.run(ctx, answer)
}

func preEnqueue(ctx context.Context, chosen framework.Framework, pod *v1.Pod) map[string]verdict {
	var refused map[string]verdict
	for _, plugin := range chosen.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			if refused == nil {
				refused = map[string]verdict{}
			}
			refused[plugin.Name()] = verdictOf(status, plugin.Name())
		}
	}
	return refused
}

func inEffect(plugins *config.Plugins) *profileInEffect {
	weighted := [][2]any{}
	for _, plugin := range plugins.Score.Enabled {
		weighted = append(weighted, [2]any{plugin.Name, plugin.Weight})
	}
	return &profileInEffect{
		PreFilter:  namesOf(plugins.PreFilter),
		Filter:     namesOf(plugins.Filter),
		PostFilter: namesOf(plugins.PostFilter),
		PreScore:   namesOf(plugins.PreScore),
		Score:      weighted,
	}
}

func namesOf(plugins config.PluginSet) []string {
	names := []string{}
	for _, plugin := range plugins.Enabled {
		names = append(names, plugin.Name)
	}
	return names
}

func (c *cycle) run(ctx context.Context, answer *decision) error {
	narrowed, status, narrowing := c.profile.RunPreFilterPlugins(ctx, c.state, c.pod)
	answer.PreFilter = &preFilterResult{Code: status.Code().String(), Plugins: c.seen.preFilter}
	if !status.IsSuccess() {
		answer.PreFilter.Plugin = status.Plugin()
		answer.PreFilter.Reasons = sorted(status.Reasons())
		return c.refuse(ctx, answer)
	}
	if !narrowed.AllNodes() {
		answer.PreFilter.Nodes = sets.List(narrowed.NodeNames)
	}
	feasible := c.filter(ctx, answer, narrowed, sets.List(narrowing))
	if len(feasible) == 0 {
		return c.refuse(ctx, answer)
	}
	return c.score(ctx, answer, feasible)
}

// filter asks about every node, as the scheduler does when it may not stop early.
func (c *cycle) filter(ctx context.Context, answer *decision, narrowed *fwk.PreFilterResult, narrowing []string) []fwk.NodeInfo {
	feasible := []fwk.NodeInfo{}
	answer.Filter = map[string]any{}
	for _, node := range c.nodes {
		name := node.Node().Name
		if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
			answer.Filter[name] = verdict{
				Code:       fwk.UnschedulableAndUnresolvable.String(),
				Reasons:    []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", narrowing)},
				ExcludedBy: narrowing,
			}
			continue
		}
		status := c.profile.RunFilterPluginsWithNominatedPods(ctx, c.state, c.pod, node)
		if status.IsSuccess() {
			answer.Filter[name] = "ok"
			feasible = append(feasible, node)
			continue
		}
		said := verdictOf(status, status.Plugin())
		said.Also = c.also(ctx, node, status.Plugin())
		answer.Filter[name] = said
	}
	return feasible
}

// also names the plugins that would have refused the node too, each asked alone.
func (c *cycle) also(ctx context.Context, node fwk.NodeInfo, first string) map[string]verdict {
	others := map[string]verdict{}
	for _, plugin := range c.seen.filters {
		if plugin.Name() == first || c.state.GetSkipFilterPlugins().Has(plugin.Name()) {
			continue
		}
		if status := plugin.Filter(ctx, c.state.Clone(), c.pod, node); !status.IsSuccess() {
			others[plugin.Name()] = verdictOf(status, plugin.Name())
		}
	}
	return others
}

func (c *cycle) score(ctx context.Context, answer *decision, feasible []fwk.NodeInfo) error {
	answer.Total = map[string]int64{}
	if !c.profile.HasScorePlugins() {
		for _, node := range feasible {
			answer.Total[node.Node().Name] = 1
		}
	} else if err := c.scoreWithPlugins(ctx, answer, feasible); err != nil {
		return err
	}
	answer.Best = bestOf(answer.Total)
	nominated := c.pod.Status.NominatedNodeName
	if _, fits := answer.Total[nominated]; fits {
		answer.SelectedByNomination = nominated
		answer.Best = []string{nominated}
	}
	return c.control(ctx, answer)
}

func (c *cycle) scoreWithPlugins(ctx context.Context, answer *decision, feasible []fwk.NodeInfo) error {
	if status := c.profile.RunPreScorePlugins(ctx, c.state, c.pod, feasible); !status.IsSuccess() {
		return fmt.Errorf("PreScore failed: %w", status.AsError())
	}
	answer.PreScore = c.seen.preScore
	totals, status := c.profile.RunScorePlugins(ctx, c.state, c.pod, feasible)
	if !status.IsSuccess() {
		return fmt.Errorf("Score failed: %w", status.AsError())
	}
	answer.Weights = map[string]int64{}
	answer.Scores = map[string]map[string]score{}
	for _, plugin := range c.profile.ListPlugins().Score.Enabled {
		if _, scored := c.seen.raw[plugin.Name]; scored {
			answer.Weights[plugin.Name] = int64(plugin.Weight)
			answer.Scores[plugin.Name] = map[string]score{}
		}
	}
	for _, node := range totals {
		answer.Total[node.Name] = node.TotalScore
		for _, part := range node.Scores {
			answer.Scores[part.Name][node.Name] = score{
				Raw:        c.seen.raw[part.Name][node.Name],
				Normalized: c.seen.normalized[part.Name][node.Name],
				Weighted:   part.Score,
			}
		}
	}
	return nil
}

func bestOf(total map[string]int64) []string {
	best := []string{}
	for node, points := range total {
		if len(best) > 0 && points > total[best[0]] {
			best = best[:0]
		}
		if len(best) == 0 || points == total[best[0]] {
			best = append(best, node)
		}
	}
	return sorted(best)
}

// control lets the scheduler's own routine decide, and checks that it chose one of the best.
func (c *cycle) control(ctx context.Context, answer *decision) error {
	result, err := c.schedule(ctx, framework.NewCycleState())
	if err != nil {
		return fmt.Errorf("the scheduler itself says %q, but nodes passed every filter", err)
	}
	if c.profile.PercentageOfNodesToScore() == nil && !slices.Contains(answer.Best, result) {
		return fmt.Errorf("the scheduler itself chose %s; the best are %v", result, answer.Best)
	}
	return nil
}

func (c *cycle) schedule(ctx context.Context, state fwk.CycleState) (string, error) {
	info, err := framework.NewPodInfo(c.pod)
	if err != nil {
		return "", err
	}
	result, err := c.cluster.scheduler.SchedulePod(ctx, c.profile, state, &framework.QueuedPodInfo{PodInfo: info})
	return result.SuggestedHost, err
}

func verdictOf(status *fwk.Status, plugin string) verdict {
	return verdict{Plugin: plugin, Code: status.Code().String(), Reasons: sorted(status.Reasons())}
}

func sorted(words []string) []string {
	copied := append([]string{}, words...)
	slices.Sort(copied)
	return copied
}
