"""Trains a small network with PyTorch on the CPU, for so many steps."""
import sys

import torch

steps = int(sys.argv[1])
torch.manual_seed(1)
points = torch.randn(4096, 64)
targets = torch.sin(points[:, :8].sum(dim=1, keepdim=True))
network = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(),
                              torch.nn.Linear(512, 1))
optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
losses = []
for step in range(steps):
    batch = torch.randint(0, 4096, (1024,))
    loss = torch.nn.functional.mse_loss(network(points[batch]), targets[batch])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(f"torch-train first loss={losses[0]:.4f} last={losses[-1]:.4f}")
sys.exit(0 if losses[-1] < losses[0] else 1)
