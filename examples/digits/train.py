#!/usr/bin/env python3
"""Makes the data and the weights of this example; both are shipped, so running it is not part of a build.

usage: train.py [digits.csv.gz]

With a file (sklearn/datasets/data/digits.csv.gz of the scikit-learn package), images.npy and labels.npy are made from
it, shuffled with a fixed seed. Then a network 64 - 64 - 10 is trained on the first 1,200 images, and its weights are
written beside what NumPy predicts with them for the other 597: predicted.npy and expected.txt.
"""
import gzip
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
TRAINED = 1200  # images; the rest is held out
HIDDEN = 64
EPOCHS = 60
BATCH = 32
LEARNING_RATE = 2e-3
DECAY = 1e-4


def import_csv(path):
    with gzip.open(path, "rt") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    table = table[np.random.default_rng(2022).permutation(len(table))]
    np.save(HERE / "images.npy", table[:, :64].copy())
    np.save(HERE / "labels.npy", table[:, 64].copy())


def forward(weights, images):
    """The layers of digits.tile, one by one, in float32."""
    x = images.astype(np.float32) * np.float32(1 / 16)
    hidden = np.maximum(x @ weights["w1"] + weights["b1"], 0)
    score = hidden @ weights["w2"] + weights["b2"]
    e = np.exp(score - score.max(axis=1, keepdims=True))
    return x, hidden, e / e.sum(axis=1, keepdims=True)


def gradients(weights, images, labels):
    x, hidden, probability = forward(weights, images)
    d_score = probability.copy()
    d_score[np.arange(len(labels)), labels] -= 1
    d_score /= len(labels)
    d_hidden = (d_score @ weights["w2"].T) * (hidden > 0)
    return {
        "w1": x.T @ d_hidden + DECAY * weights["w1"],
        "b1": d_hidden.sum(axis=0),
        "w2": hidden.T @ d_score + DECAY * weights["w2"],
        "b2": d_score.sum(axis=0),
    }


def train(images, labels):
    random = np.random.default_rng(1)
    shapes = {"w1": (64, HIDDEN), "b1": (HIDDEN,), "w2": (HIDDEN, 10), "b2": (10,)}
    weights = {
        name: (random.standard_normal(shape) * np.sqrt(2 / 64) if len(shape) == 2 else np.zeros(shape)).astype(np.float32)
        for name, shape in shapes.items()
    }
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    step = 0
    for _ in range(EPOCHS):
        order = random.permutation(len(images))
        for start in range(0, len(images), BATCH):
            batch = order[start : start + BATCH]
            step += 1
            for name, gradient in gradients(weights, images[batch], labels[batch]).items():
                first[name] = 0.9 * first[name] + 0.1 * gradient
                second[name] = 0.999 * second[name] + 0.001 * gradient**2
                rate = LEARNING_RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
                weights[name] = (weights[name] - rate * first[name] / (np.sqrt(second[name]) + 1e-8)).astype(np.float32)
    return weights


def main():
    if len(sys.argv) > 1:
        import_csv(sys.argv[1])
    images, labels = np.load(HERE / "images.npy"), np.load(HERE / "labels.npy")
    weights = train(images[:TRAINED], labels[:TRAINED])
    for name, value in weights.items():
        np.save(HERE / f"{name}.npy", value)
    _, _, probability = forward(weights, images[TRAINED:])
    top = np.sort(probability, axis=1)
    predicted = probability.argmax(axis=1).astype(np.int64)
    correct = int((predicted == labels[TRAINED:]).sum())
    np.save(HERE / "predicted.npy", predicted)
    (HERE / "expected.txt").write_text(f"{correct} of {len(predicted)}\n")
    print(f"{correct} of {len(predicted)} held-out images right: {100 * correct / len(predicted):.2f} %")
    print(f"closest decision: {float((top[:, -1] - top[:, -2]).min()):.4f}")


if __name__ == "__main__":
    main()
