package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"
)

const everyNodePercentage = int32(100)

// cluster is a complete scheduler that has seen a scenario's objects; nothing runs by itself.
type cluster struct {
	scheduler *scheduler.Scheduler
	informers informers.SharedInformerFactory
	logger    klog.Logger
}

// newCluster returns when every informer and every handler of the scheduler has seen all objects.
func newCluster(ctx context.Context, configText json.RawMessage, objects []runtime.Object, ticking clock.WithTicker) (*cluster, error) {
	settings, err := readConfig(configText)
	if err != nil {
		return nil, err
	}
	client := fake.NewSimpleClientset(objects...)
	factory := newInformerFactory(client)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	context.AfterFunc(ctx, broadcaster.Shutdown)
	allNodes := everyNodePercentage
	built, err := scheduler.New(ctx, client, factory, nil, profile.NewRecorderFactory(broadcaster),
		scheduler.WithComponentConfigVersion(settings.APIVersion),
		scheduler.WithProfiles(settings.Profiles...),
		scheduler.WithParallelism(settings.Parallelism),
		scheduler.WithPercentageOfNodesToScore(&allNodes),
		scheduler.WithPodInitialBackoffSeconds(settings.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(settings.PodMaxBackoffSeconds),
		scheduler.WithClock(ticking),
	)
	if err != nil {
		return nil, fmt.Errorf("kube-scheduler refuses its config: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := built.WaitForHandlersSync(ctx); err != nil {
		return nil, fmt.Errorf("the scheduler did not see all objects: %w", err)
	}
	return &cluster{scheduler: built, informers: factory, logger: klog.FromContext(ctx)}, nil
}

func readConfig(text json.RawMessage) (*config.KubeSchedulerConfiguration, error) {
	if text == nil {
		return latest.Default()
	}
	decoded, kind, err := scheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("its config cannot be read: %w", err)
	}
	settings, ok := decoded.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("its config is a %s; it must be a KubeSchedulerConfiguration", kind.Kind)
	}
	settings.APIVersion = kind.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(settings); err != nil {
		return nil, fmt.Errorf("its config is not valid: %w", err)
	}
	if len(settings.Extenders) > 0 {
		return nil, errors.New("its config has extenders, which are not asked here; leave them out")
	}
	return settings, nil
}

// profileFor also makes the snapshot that the profile's rules read.
func (c *cluster) profileFor(pod *v1.Pod) (framework.Framework, error) {
	chosen, ok := c.scheduler.Profiles[pod.Spec.SchedulerName]
	if !ok {
		return nil, fmt.Errorf("no profile is called %q, which its pod names as schedulerName", pod.Spec.SchedulerName)
	}
	snapshot, ok := chosen.SnapshotSharedLister().(*internalcache.Snapshot)
	if !ok {
		return nil, fmt.Errorf("the snapshot is a %T in this version of Kubernetes; teach cluster.go about it", chosen.SnapshotSharedLister())
	}
	return chosen, c.scheduler.Cache.UpdateSnapshot(c.logger, snapshot)
}
