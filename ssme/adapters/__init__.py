"""Models and data -> ScoreTable: `ssme.adapters.huggingface`, `ssme.adapters.sklearn`, `ssme.adapters.torch`.

Each module has one function, ``collect_scores(models, data, ...)``. None is imported before it is asked for, so that
what an adapter needs does not burden those who use another.
"""
