import sys; sys.path.insert(0,'tests/symbolic')
import ordinary_functions as o
from dpaudit.symbolic import law_of
D={'noisy_counts_loop':['a','b','a'],'noisy_counts_comprehension':['a','b','a'],'clipped_mean':[1.0,5.0],'histogram_array':[0.5,1.5,3.2],'pandas_group_by':[1.,2,3,4,5,6],
'gauss_count':[1,2],'coin_flip_survey':[0,1],'randomised_sum':[0,1,1],'best_candidate':['red','blue','red'],'noisy_argmax':[0,1,1,2],'first_above':[1,2,3],'thresholded_release':['a','a','b'],'report_text':[1,2],'geometric_count':[1,2],'subsampled_sum':[1,0,1]}
for n,d in D.items():
    try: print('OK', n, '|', str(law_of(getattr(o,n),d)).replace('\n',' ; ')[:200])
    except Exception as e: print('--', n, type(e).__name__, str(e)[:300])
