//go:build kubernetes_1_37

package main

// What v1.37 calls differently from earlier versions.

import (
	"fmt"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// The queue's timers call these; nothing public does.

//go:linkname flushBackoffCompleted k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushBackoffQCompleted
func flushBackoffCompleted(queue *internalqueue.PriorityQueue, logger klog.Logger)

//go:linkname flushUnschedulableLeftover k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushUnschedulableEntitiesLeftover
func flushUnschedulableLeftover(queue *internalqueue.PriorityQueue, logger klog.Logger)

func flushBackoff(queue internalqueue.SchedulingQueue, logger klog.Logger) {
	flushBackoffCompleted(queue.(*internalqueue.PriorityQueue), logger)
}

func flushLeftover(queue internalqueue.SchedulingQueue, logger klog.Logger) {
	flushUnschedulableLeftover(queue.(*internalqueue.PriorityQueue), logger)
}

func newInformerFactory(client kubernetes.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0, nil)
}

func popFromQueue(queue internalqueue.SchedulingQueue, logger klog.Logger) (*framework.QueuedPodInfo, error) {
	entity, err := queue.Pop(logger)
	if err != nil {
		return nil, err
	}
	info, ok := entity.(*framework.QueuedPodInfo)
	if !ok {
		return nil, fmt.Errorf("the queue gave a %T; only pods are asked about here", entity)
	}
	return info, nil
}

func addUnschedulable(queue internalqueue.SchedulingQueue, logger klog.Logger, info *framework.QueuedPodInfo) error {
	return queue.AddUnschedulablePodIfNotPresent(logger, info, queue.SchedulingCycle())
}

func deleteFromQueue(queue internalqueue.SchedulingQueue, logger klog.Logger, pod *v1.Pod) {
	queue.Delete(logger, pod)
}

func isGated(queue internalqueue.SchedulingQueue, pod *v1.Pod) bool {
	info, found := queue.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup)
	return found && info.Gated()
}
